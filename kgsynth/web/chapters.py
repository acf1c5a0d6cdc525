"""The overview pages of the built-in corpus: the library and the language by subject, in our own words (Apache-2.0).

`CHAPTERS` is also the list of modules the corpus documents: nothing that is not named here is ever imported. Entries
whose target the running Python does not have are left out of the pages. The notation, line by line:

    # slug | Title          a chapter; the lines up to the first group are its introduction
    ## Title                a group inside the chapter; the line after it says what the group is about
    target [= term] :: text an entry; target is a dotted name, topic/<name> or chapter/<slug>; term defaults to the target
"""

from __future__ import annotations

from dataclasses import dataclass, field

LICENCE = "Apache-2.0"


@dataclass(kw_only=True)
class Entry:
    target: str
    term: str
    text: str


@dataclass(kw_only=True)
class Group:
    title: str
    text: str = ""
    entries: list[Entry] = field(default_factory=list)


@dataclass(kw_only=True)
class Chapter:
    slug: str
    title: str
    text: str = ""
    groups: list[Group] = field(default_factory=list)


def read_chapters() -> list[Chapter]:
    chapters: list[Chapter] = []
    for line in filter(None, map(str.strip, CHAPTERS.splitlines())):
        if line.startswith("## "):
            chapters[-1].groups.append(Group(title=line[3:]))
        elif line.startswith("# "):
            slug, title = line[2:].split(" | ")
            chapters.append(Chapter(slug=slug, title=title))
        elif " :: " in line:
            left, text = line.split(" :: ", 1)
            target, _, term = left.partition(" = ")
            chapters[-1].groups[-1].entries.append(Entry(target=target, term=term or target, text=text))
        else:
            place = chapters[-1].groups[-1] if chapters[-1].groups else chapters[-1]
            place.text = f"{place.text} {line}".strip()
    return chapters


CHAPTERS = """
# python | Python
Python is a general-purpose programming language with a large standard library. This page is the way in: the language
on one side, the library on the other.

## The language
The language is described from its words up: how code is spelled, evaluated, executed and organised.
chapter/lexical-structure = lexical structure :: Lexical structure is how source text is split into names, literals and operators.
chapter/expressions = expressions :: Expressions are pieces of code that are evaluated to a value.
chapter/statements = statements :: Statements are the instructions a program executes one after another.
chapter/data-model = data model :: The data model says what objects, types and special methods are.
chapter/execution-model = execution model :: The execution model covers naming, scopes and exceptions.
chapter/built-in-types = built-in types :: Built-in types are the numbers, sequences, sets and mappings that need no import.
chapter/built-in-functions = built-in functions :: Built-in functions are always available under their plain names.
chapter/exceptions = built-in exceptions :: Built-in exceptions are the classes raised when an operation fails.

## Working with data
The library starts with modules that represent, transform and compute with values.
chapter/text-processing = text processing :: Text processing covers searching, comparing, formatting and encoding strings.
chapter/binary-data = binary data :: Binary data services read and write packed bytes.
chapter/data-types = data types :: Data type modules add dates, containers, queues, enumerations and copies.
chapter/mathematics = numeric and mathematical modules :: Numeric modules provide functions, exact numbers, randomness and statistics.
chapter/functional-programming = functional programming :: Functional programming tools build iterators and functions out of other functions.
chapter/algorithms = algorithms and data structures :: Algorithm modules offer sorting, searching, heaps, graphs and caches ready to use.

## Files and formats
Programs meet the outside world through files; these chapters cover finding, storing and encoding them.
chapter/files = file and directory access :: File and directory modules name, walk, compare, copy and delete files.
chapter/persistence = data persistence :: Persistence modules store Python objects between runs.
chapter/compression = data compression and archiving :: Compression modules shrink data and bundle files into archives.
chapter/file-formats = file formats :: File format modules parse configuration, tables and property lists.
chapter/markup = structured markup :: Markup modules parse and build HTML and XML.
chapter/internet-data = internet data handling :: Internet data modules encode messages and documents for transport.

## Systems and networks
Other chapters deal with the operating system, with doing several things at once, and with other machines.
chapter/operating-system = operating system services :: Operating system services give access to processes, time, arguments and logging.
chapter/concurrency = concurrent execution :: Concurrent execution runs work in threads, processes and event loops.
chapter/networking = networking and interprocess communication :: Networking modules exchange data between processes and machines.
chapter/internet-protocols = internet protocols :: Protocol modules speak HTTP, SMTP and related protocols.
chapter/cryptography = cryptographic services :: Cryptographic services hash, authenticate and generate secrets.
chapter/localisation = internationalisation :: Internationalisation modules translate messages and follow local conventions.

## Tools
The last group looks at programs themselves: running, testing, measuring and inspecting them.
chapter/development-tools = development tools :: Development tools document, test and type-annotate code.
chapter/debugging = debugging and profiling :: Debugging and profiling tools show what a program does and where its time goes.
chapter/runtime = Python runtime services :: Runtime services expose the interpreter and its objects.
chapter/importing = importing modules :: Importing modules finds, loads and runs Python code.
chapter/language-services = Python language services :: Language services tokenize, parse and disassemble Python source.

# lexical-structure | Lexical structure
Lexical structure describes how the characters of a program form names and literal values.

## Names
Names are the words a program uses for its objects.
topic/identifiers = identifiers :: Identifiers are the names of variables, functions, classes and modules.
topic/id-classes = reserved classes of identifiers :: Reserved classes of identifiers are patterns of leading and trailing underscores with a special meaning.
topic/atom-identifiers = names as expressions :: A name used as an expression gives the object bound to it, and private names are mangled.

## Literals
Literals are notations for constant values of some built-in types.
topic/atom-literals = literals :: Literals stand for constant values such as strings, bytes and numbers.
topic/strings = string literals :: String and bytes literals are written between quotes, with escapes and prefixes.
topic/numbers = numeric literals :: Numeric literals are integers, floating point numbers and imaginary numbers.
topic/integers = integer literals :: Integer literals are whole numbers in decimal, binary, octal or hexadecimal notation.
topic/floating = floating point literals :: Floating point literals have a decimal point or an exponent.
topic/imaginary = imaginary literals :: Imaginary literals end in j and denote the imaginary part of a complex number.

# expressions | Expressions
Expressions are combinations of values, names, operators and calls that are evaluated to an object.

## Displays and atoms
Displays build a container from the expressions written inside brackets.
topic/lists = list displays :: A list display is a series of expressions or a comprehension in square brackets.
topic/dict = dictionary displays :: A dictionary display is a series of key and value pairs in curly braces.
topic/exprlists = expression lists :: An expression list with at least one comma makes a tuple.

## Primaries
Primaries are the most tightly binding operations: they reach into objects or call them.
topic/attribute-references = attribute references :: An attribute reference is a primary followed by a period and a name.
topic/subscriptions = subscriptions :: A subscription selects an item of a container by index or key.
topic/slicings = slicings :: A slicing selects a range of items in a sequence.
topic/calls = calls :: A call runs a callable object with a series of arguments.

## Operators
Operators combine one or two operands into a new value, each with its own precedence.
topic/operator-summary = operator precedence :: Operator precedence says which operators bind more tightly than others.
topic/power = power operator :: The power operator raises its left operand to the power of its right operand.
topic/unary = unary operations :: Unary operations negate, invert or keep a single operand.
topic/binary = binary arithmetic operations :: Binary arithmetic operations add, subtract, multiply, divide and take remainders.
topic/shifting = shifting operations :: Shifting operations move the bits of an integer to the left or right.
topic/bitwise = binary bitwise operations :: Bitwise operations combine integers bit by bit with and, or and exclusive or.
topic/comparisons = comparisons :: Comparisons test order, equality, identity and membership, and can be chained.
topic/in = membership test operations :: Membership test operations say whether a container holds a value.
topic/booleans = boolean operations :: Boolean operations combine truth values with and, or and not, and stop early.
topic/lambda = lambda expressions :: Lambda expressions create small anonymous functions.
topic/await = await expression :: The await expression suspends a coroutine until an awaitable is done.
topic/conversions = arithmetic conversions :: Arithmetic conversions bring numeric operands to a common type.

# statements | Statements
Statements are executed for their effect; simple statements fit on one line and compound statements contain others.

## Simple statements
Simple statements bind names, leave blocks or hand over control.
topic/assignment = assignment statements :: Assignment statements bind names to values and change attributes or items of mutable objects.
topic/augassign = augmented assignment statements :: Augmented assignment combines a binary operation and an assignment.
topic/assert = assert statement :: The assert statement checks a condition while debugging.
topic/pass = pass statement :: The pass statement does nothing where a statement is required.
topic/del = del statement :: The del statement removes names, items, slices or attributes.
topic/return = return statement :: The return statement leaves a function with a value.
topic/yield = yield statement :: The yield statement makes a function a generator and hands out a value.
topic/raise = raise statement :: The raise statement raises an exception.
topic/break = break statement :: The break statement ends the nearest enclosing loop.
topic/continue = continue statement :: The continue statement goes on with the next cycle of a loop.
topic/import = import statement :: The import statement loads a module and binds its names.
topic/global = global statement :: The global statement makes names refer to the module's variables.
topic/nonlocal = nonlocal statement :: The nonlocal statement makes names refer to variables of the enclosing function.

## Compound statements
Compound statements control the execution of the statements inside them.
topic/compound = compound statements :: Compound statements consist of clauses with a header and a suite.
topic/if = if statement :: The if statement executes one of several suites depending on conditions.
topic/while = while statement :: The while statement repeats a suite as long as a condition is true.
topic/for = for statement :: The for statement runs a suite once for every item of an iterable.
topic/else = else clause :: The else clause of a loop or a try statement runs when nothing interrupted it.
topic/try = try statement :: The try statement handles exceptions and runs cleanup code.
topic/with = with statement :: The with statement runs a block under a context manager.
topic/function = function definitions :: A function definition creates a function object with parameters and a body.
topic/class = class definitions :: A class definition creates a class object from a suite of statements.
topic/async = coroutines :: Coroutines are functions defined with async def that can suspend and resume.

# data-model | Data model
The data model describes objects, their types, and the methods through which they take part in the language.

## Objects and types
Every piece of data is an object with an identity, a type and a value.
topic/objects = objects, values and types :: Objects have an identity, a type and a value that may be mutable.
topic/types = standard type hierarchy :: The standard type hierarchy lists the types built into the interpreter.
topic/typesfunctions = functions as objects :: Function objects are created by function definitions and can be called.
topic/typesmethods = methods as objects :: Method objects are functions called through the attribute notation.
topic/typesmodules = modules as objects :: Module objects give access to the names a module defines.
topic/bltin-code-objects = code objects :: Code objects represent compiled executable code.
topic/bltin-type-objects = type objects :: Type objects represent the various object types.
topic/bltin-null-object = None :: None is the object returned by functions that do not return a value.
topic/bltin-ellipsis-object = ellipsis object :: The ellipsis object is commonly used by slicing.
topic/specialattrs = special attributes :: Special attributes give information about an object's dictionary, class and bases.

## Special methods
Special methods let a class define what operators and built-in functions do with its instances.
topic/specialnames = special method names :: Special method names are the double-underscore methods called by language constructs.
topic/customization = basic customization :: Basic customization methods create, show, compare and hash objects.
topic/attribute-access = attribute access customization :: Attribute access methods define what reading, setting and deleting an attribute means.
topic/callable-types = callable objects :: The __call__ method makes instances callable.
topic/sequence-types = container emulation :: Container methods define length, item access and iteration.
topic/numeric-types = numeric type emulation :: Numeric methods define arithmetic operators for a class.
topic/context-managers = with statement context managers :: Context manager methods define what happens on entering and leaving a with block.

# execution-model | Execution model
The execution model tells how blocks of code run, how names find their objects and what happens on errors.

## Names and errors
Blocks, scopes and exceptions decide what runs next and what a name means.
topic/execmodel = program execution :: Program execution is built from code blocks, name binding and exceptions.
topic/naming = naming and binding :: Naming and binding rules decide which object a name refers to.
topic/dynamic-features = interaction with dynamic features :: Free variables are resolved at run time and are not seen by eval and exec.
topic/exceptions = exception handling :: Exceptions break out of the normal flow of control to handle errors.
topic/truth = truth value testing :: Truth value testing decides whether an object counts as true or false.

# built-in-types | Built-in types
Built-in types are available without an import: numbers, sequences, text, bytes, sets and mappings.

## Numeric types
Numeric types represent integers, real and complex numbers and truth values.
builtins.int = int :: The int type holds whole numbers of any size.
builtins.float = float :: The float type holds double-precision floating point numbers.
builtins.complex = complex :: The complex type holds a real and an imaginary part.
builtins.bool = bool :: The bool type has the two values True and False.

## Sequence types
Sequence types keep items in order and give access by position.
topic/typesseq = common sequence operations :: Sequence operations such as slicing and membership work on every sequence type.
builtins.list = list :: The list type is a mutable sequence of objects.
builtins.tuple = tuple :: The tuple type is an immutable sequence of objects.
builtins.range = range :: The range type is an immutable arithmetic sequence of integers.
topic/typesseq-mutable = mutable sequence types :: Mutable sequences can be changed in place by assignment, appending and deletion.

## Text and binary sequence types
Text and binary sequences hold characters and bytes.
builtins.str = str :: The str type is an immutable sequence of Unicode characters.
topic/string-methods = string methods :: String methods search, split, replace, pad and change the case of text.
topic/formatstrings = format string syntax :: Format string syntax describes replacement fields and format specifications.
builtins.bytes = bytes :: The bytes type is an immutable sequence of integers from 0 to 255.
builtins.bytearray = bytearray :: The bytearray type is a mutable sequence of integers from 0 to 255.
builtins.memoryview = memoryview :: The memoryview type gives access to the memory of another object without copying.

## Set and mapping types
Sets hold distinct hashable objects and mappings relate keys to values.
builtins.set = set :: The set type is a mutable unordered collection of distinct objects.
builtins.frozenset = frozenset :: The frozenset type is an immutable and hashable set.
builtins.dict = dict :: The dict type maps hashable keys to objects.
topic/typesmapping = mapping types :: Mapping types relate hashable values to arbitrary objects.

## Descriptors and base types
A few types exist to build other types.
builtins.object = object :: The object type is the base of all classes.
builtins.type = type :: The type of a class is type, which also creates new classes.
builtins.property = property :: The property type turns methods into managed attributes.
builtins.classmethod = classmethod :: The classmethod type passes the class instead of the instance to a method.
builtins.staticmethod = staticmethod :: The staticmethod type keeps a method from receiving an implicit first argument.
builtins.super = super :: The super type delegates method calls to a parent or sibling class.
builtins.slice = slice :: The slice type represents the indices given by start, stop and step.

# built-in-functions | Built-in functions
Built-in functions are always available; they compute, convert, iterate, inspect and interact.

## Computing and converting
These functions compute numbers or turn values into other representations.
builtins.abs = abs :: The abs function returns the absolute value of a number.
builtins.divmod = divmod :: The divmod function returns quotient and remainder together.
builtins.pow = pow :: The pow function raises a number to a power, optionally modulo a third.
builtins.round = round :: The round function rounds a number to a given number of digits.
builtins.sum = sum :: The sum function adds up the items of an iterable.
builtins.min = min :: The min function returns the smallest item.
builtins.max = max :: The max function returns the largest item.
builtins.bin = bin :: The bin function writes an integer in binary notation.
builtins.hex = hex :: The hex function writes an integer in hexadecimal notation.
builtins.oct = oct :: The oct function writes an integer in octal notation.
builtins.chr = chr :: The chr function returns the character with a given code point.
builtins.ord = ord :: The ord function returns the code point of a character.
builtins.ascii = ascii :: The ascii function returns a printable representation in ASCII only.
builtins.repr = repr :: The repr function returns the canonical string representation of an object.
builtins.format = format :: The format function formats a value by a format specification.
builtins.hash = hash :: The hash function returns the hash value of an object.

## Iterating
These functions consume or produce iterators.
builtins.len = len :: The len function returns the number of items in a container.
builtins.iter = iter :: The iter function gets an iterator from an object.
builtins.next = next :: The next function returns the next item of an iterator.
builtins.enumerate = enumerate :: The enumerate type pairs every item with its position.
builtins.zip = zip :: The zip type walks several iterables in parallel.
builtins.map = map :: The map type applies a function to every item.
builtins.filter = filter :: The filter type keeps the items for which a function is true.
builtins.reversed = reversed :: The reversed type walks a sequence backwards.
builtins.sorted = sorted :: The sorted function returns a new sorted list.
builtins.all = all :: The all function is true when no item is false.
builtins.any = any :: The any function is true when some item is true.

## Inspecting
These functions look at objects, attributes and classes.
builtins.isinstance = isinstance :: The isinstance function tells whether an object belongs to a class.
builtins.issubclass = issubclass :: The issubclass function tells whether a class derives from another.
builtins.callable = callable :: The callable function tells whether an object can be called.
builtins.getattr = getattr :: The getattr function returns a named attribute.
builtins.setattr = setattr :: The setattr function sets a named attribute.
builtins.hasattr = hasattr :: The hasattr function tells whether an attribute exists.
builtins.delattr = delattr :: The delattr function deletes a named attribute.
builtins.dir = dir :: The dir function lists the names of an object's attributes.
builtins.vars = vars :: The vars function returns the attribute dictionary of an object.
builtins.id = id :: The id function returns the identity of an object.
builtins.globals = globals :: The globals function returns the module's variables.
builtins.locals = locals :: The locals function returns the current local variables.

## Running and interacting
These functions run code or talk to the user.
builtins.print = print :: The print function writes objects to a text stream.
builtins.input = input :: The input function reads a line from standard input.
builtins.open = open :: The open function opens a file and returns a file object.
builtins.eval = eval :: The eval function evaluates an expression given as a string.
builtins.exec = exec :: The exec function executes statements given as a string.
builtins.compile = compile :: The compile function turns source into a code object.
builtins.breakpoint = breakpoint :: The breakpoint function enters the debugger.

# exceptions | Built-in exceptions
Built-in exceptions form a class hierarchy; handlers catch a class together with everything derived from it.

## Base classes
Base classes are caught rather than raised.
builtins.BaseException = BaseException :: BaseException is the root of all exceptions.
builtins.Exception = Exception :: Exception is the base of all exceptions that do not exit the interpreter.
builtins.ArithmeticError = ArithmeticError :: ArithmeticError is the base of errors in arithmetic.
builtins.LookupError = LookupError :: LookupError is the base of errors about a missing key or index.
builtins.OSError = OSError :: OSError reports a failed system call.
builtins.Warning = Warning :: Warning is the base of all warning categories.

## Common errors
Common errors report what is wrong with a value, a name or an operation.
builtins.TypeError = TypeError :: TypeError reports an operation on an object of the wrong type.
builtins.ValueError = ValueError :: ValueError reports an argument of the right type with an unsuitable value.
builtins.KeyError = KeyError :: KeyError reports a missing dictionary key.
builtins.IndexError = IndexError :: IndexError reports a sequence index out of range.
builtins.AttributeError = AttributeError :: AttributeError reports a missing attribute.
builtins.NameError = NameError :: NameError reports a name that is not bound.
builtins.ZeroDivisionError = ZeroDivisionError :: ZeroDivisionError reports division by zero.
builtins.OverflowError = OverflowError :: OverflowError reports a result too large to represent.
builtins.StopIteration = StopIteration :: StopIteration signals that an iterator has no more items.
builtins.RuntimeError = RuntimeError :: RuntimeError reports an error in no other category.
builtins.RecursionError = RecursionError :: RecursionError reports that the maximum recursion depth is exceeded.
builtins.NotImplementedError = NotImplementedError :: NotImplementedError marks methods that a subclass must provide.
builtins.AssertionError = AssertionError :: AssertionError reports a failed assert statement.
builtins.ImportError = ImportError :: ImportError reports a module or name that cannot be imported.
builtins.UnicodeError = UnicodeError :: UnicodeError reports failed encoding or decoding of text.
builtins.FileNotFoundError = FileNotFoundError :: FileNotFoundError reports a file or directory that does not exist.
builtins.KeyboardInterrupt = KeyboardInterrupt :: KeyboardInterrupt signals that the user pressed the interrupt key.

# text-processing | Text processing
Text processing modules work on strings: they search, compare, wrap, format and encode text.

## Searching and matching
Patterns describe sets of strings and find them in longer texts.
re :: The re module searches and replaces text with regular expressions.
fnmatch :: The fnmatch module matches file names against shell-style wildcards.
difflib :: The difflib module compares sequences and shows their differences.

## Formatting and layout
Formatting turns values into text and lays text out for reading.
string :: The string module has character constants, templates and a customisable formatter.
textwrap :: The textwrap module wraps, fills, indents and dedents paragraphs.
pprint :: The pprint module prints data structures over several readable lines.
reprlib :: The reprlib module shortens the representation of large objects.

## Characters and encodings
Unicode modules describe characters and convert text to bytes and back.
unicodedata :: The unicodedata module gives access to the Unicode character database.
codecs :: The codecs module registers and applies encoders and decoders.
stringprep :: The stringprep module prepares Unicode strings for comparison in protocols.

## Splitting text
Simple lexers split text into words and tokens.
shlex :: The shlex module splits strings with the quoting rules of a Unix shell.

# binary-data | Binary data services
Binary data services move between Python values and their byte representation.

## Packing and encoding
Packed formats describe bytes field by field.
struct :: The struct module packs and unpacks values as fixed binary records.
array :: The array module stores numbers compactly in one typed sequence.
binascii :: The binascii module converts between binary data and ASCII encodings.
base64 :: The base64 module encodes bytes with the letters of a small alphabet.
codecs :: The codecs module registers and applies encoders and decoders.

# data-types | Data types
Data type modules add specialised types to the built-in ones.

## Dates and times
Calendar types calculate with days, clocks and time zones.
datetime :: The datetime module has types for dates, times, intervals and time zones.
zoneinfo :: The zoneinfo module reads the IANA time zone database.
calendar :: The calendar module prints calendars and answers questions about weeks and months.

## Containers
Containers organise objects for a particular pattern of access.
collections :: The collections module has queues, counters, named tuples and dictionaries with defaults.
collections.abc = collections.abc :: The collections.abc module has abstract base classes for containers.
heapq :: The heapq module keeps a list ordered as a priority queue.
bisect :: The bisect module keeps a list sorted by binary search.
array :: The array module stores numbers compactly in one typed sequence.
queue :: The queue module has queues that threads can share.
weakref :: The weakref module refers to objects without keeping them alive.

## Defining and copying types
Some modules define new kinds of types or duplicate objects.
enum :: The enum module defines sets of symbolic names bound to constant values.
dataclasses :: The dataclasses module generates methods for classes that mainly hold data.
types :: The types module names the types the interpreter creates and makes new ones.
copy :: The copy module makes shallow and deep copies of objects.
graphlib :: The graphlib module sorts the nodes of a graph topologically.

# mathematics | Numeric and mathematical modules
Numeric modules provide mathematical functions, other kinds of numbers, random numbers and statistics.

## Functions of numbers
Mathematical functions work on real or complex floating point numbers.
math :: The math module has functions of real numbers, from roots to trigonometry.
cmath :: The cmath module has functions of complex numbers.

## Kinds of numbers
Exact and abstract numbers complement binary floating point.
decimal :: The decimal module calculates with correctly rounded decimal numbers.
fractions :: The fractions module calculates with rational numbers.
numbers :: The numbers module defines a hierarchy of abstract numeric classes.

## Randomness and statistics
These modules draw numbers and summarise them.
random :: The random module generates pseudo-random numbers and choices.
statistics :: The statistics module computes averages, spread and correlations of data.
colorsys :: The colorsys module converts colours between coordinate systems.

# functional-programming | Functional programming
Functional programming modules treat functions and iterators as values to combine.

## Building blocks
Building blocks are small functions that are composed into larger ones.
itertools :: The itertools module builds fast, memory-efficient iterators.
functools :: The functools module has higher-order functions such as caches and partial application.
operator :: The operator module offers the operators of the language as functions.

# algorithms | Algorithms and data structures
Some classic algorithms and data structures are ready to use in the library.

## Ordering and searching
Ordered collections find the smallest item or the right place quickly.
heapq :: The heapq module keeps a list ordered as a priority queue.
bisect :: The bisect module keeps a list sorted by binary search.
graphlib :: The graphlib module sorts the nodes of a graph topologically.
builtins.sorted = sorted :: The sorted function returns a new sorted list.

## Queues and caches
Queues hand items over in order and caches remember results.
collections.deque = collections.deque :: A deque is a list-like sequence with fast appends and pops at both ends.
queue.PriorityQueue = queue.PriorityQueue :: A priority queue returns its lowest entry first.
functools.lru_cache = functools.lru_cache :: An LRU cache keeps the results of the most recent calls of a function.
collections.Counter = collections.Counter :: A counter counts hashable objects.

## Combinatorics and sampling
Combinatorial iterators enumerate arrangements and samplers draw from them.
itertools.permutations = itertools.permutations :: Permutations are all orderings of the items of an iterable.
itertools.combinations = itertools.combinations :: Combinations are all subsequences of a given length.
itertools.product = itertools.product :: The Cartesian product pairs every item of one iterable with every item of others.
random.sample = random.sample :: A sample is a choice of distinct elements from a population.
random.shuffle = random.shuffle :: A shuffle puts the items of a list in random order.

## Comparing and hashing
Comparison algorithms measure how two pieces of data differ.
difflib.SequenceMatcher = difflib.SequenceMatcher :: A sequence matcher finds the longest matching blocks of two sequences.
math.gcd = math.gcd :: The greatest common divisor is the largest integer that divides all arguments.
hashlib :: The hashlib module computes secure hashes and message digests.
zlib.crc32 = zlib.crc32 :: A CRC-32 checksum detects accidental changes of data.

# files | File and directory access
File and directory modules locate, inspect, compare and move files.

## Paths
Paths are names of files and directories.
pathlib :: The pathlib module represents file system paths as objects.
os.path = os.path :: The os.path module manipulates path names as strings.
glob :: The glob module finds path names that match a pattern.
fnmatch :: The fnmatch module matches file names against shell-style wildcards.

## Working with files
These modules read, compare, create and copy files.
fileinput :: The fileinput module iterates over the lines of several input files.
linecache :: The linecache module gives random access to the lines of a text file.
filecmp :: The filecmp module compares files and directories.
tempfile :: The tempfile module creates temporary files and directories.
shutil :: The shutil module copies, moves and removes whole trees of files.
stat :: The stat module interprets the results of file status calls.

# persistence | Data persistence
Persistence modules save objects to disk and bring them back.

## Serialisation
Serialisation turns objects into bytes.
pickle :: The pickle module serialises arbitrary Python objects.
copyreg :: The copyreg module registers functions that support pickling.
marshal :: The marshal module serialises internal objects of the interpreter.

## Databases
Databases keep data under keys or in tables.
shelve :: The shelve module is a persistent dictionary of pickled objects.
dbm :: The dbm module is an interface to simple key and value databases.
sqlite3 :: The sqlite3 module is an interface to SQLite databases.

# compression | Data compression and archiving
Compression modules reduce the size of data; archive modules put many files into one.

## Compression
Each compression module implements one algorithm.
zlib :: The zlib module compresses with the deflate algorithm.
gzip :: The gzip module reads and writes gzip files.
bz2 :: The bz2 module compresses with the bzip2 algorithm.
lzma :: The lzma module compresses with the LZMA algorithm.

## Archives
Archives store files together with their names.
zipfile :: The zipfile module reads and writes ZIP archives.
tarfile :: The tarfile module reads and writes tar archives.

# file-formats | File formats
File format modules parse and write formats that are not markup languages.

## Tables and settings
Tables and settings are kept in plain text that programs parse.
csv :: The csv module reads and writes comma-separated tables.
configparser :: The configparser module reads and writes INI-style configuration files.
tomllib :: The tomllib module parses TOML documents.
json :: The json module encodes and decodes JSON.
plistlib :: The plistlib module reads and writes property lists.
netrc :: The netrc module reads the login file of file transfer programs.

## Media
Media modules read and describe sound.
wave :: The wave module reads and writes WAV sound files.

# markup | Structured markup
Markup modules handle HTML and XML documents.

## HTML
HTML is the markup language of web pages.
html :: The html module escapes and unescapes special characters.
html.parser = html.parser :: The html.parser module parses HTML event by event.
html.entities = html.entities :: The html.entities module lists named character references.

## XML
XML documents are trees of elements that can be built in memory or processed as events.
xml.etree.ElementTree = xml.etree.ElementTree :: The ElementTree module represents XML as a tree of Python objects.
xml.dom = xml.dom :: The xml.dom package defines the Document Object Model interface.
xml.dom.minidom = xml.dom.minidom :: The minidom module is a small implementation of the Document Object Model.
xml.dom.pulldom = xml.dom.pulldom :: The pulldom module builds partial trees from a stream of events.
xml.sax = xml.sax :: The xml.sax package parses XML with callbacks.
xml.sax.handler = xml.sax.handler :: The handler module has base classes for SAX callbacks.
xml.sax.saxutils = xml.sax.saxutils :: The saxutils module escapes text and generates XML.
xml.parsers.expat = xml.parsers.expat :: The expat module is a fast non-validating XML parser.

# internet-data | Internet data handling
Internet data modules encode messages and documents the way networks expect them.

## Messages
Messages have headers, bodies and attachments.
email :: The email package parses, changes and generates mail messages.
email.message = email.message :: The email.message module represents a mail message.
email.parser = email.parser :: The email.parser module turns text into message objects.
email.policy = email.policy :: The email.policy module controls parsing and generation rules.
email.utils = email.utils :: The email.utils module handles addresses and dates.
email.header = email.header :: The email.header module handles non-ASCII headers.
mailbox :: The mailbox module manipulates mailboxes on disk.
mimetypes :: The mimetypes module maps file names to media types.

## Encodings
Encodings represent data with a restricted set of characters.
json :: The json module encodes and decodes JSON.
base64 :: The base64 module encodes bytes with the letters of a small alphabet.
quopri :: The quopri module encodes and decodes quoted-printable data.

# operating-system | Operating system services
Operating system services work in much the same way on every system.

## System interfaces
System interfaces call what the operating system offers.
os :: The os module gives access to processes, files and the environment.
io :: The io module implements text, binary and raw streams.
time :: The time module reads clocks and formats times.
platform :: The platform module identifies the machine and the interpreter.
errno :: The errno module names the error codes of the system.
ctypes :: The ctypes module calls functions in shared libraries.
getpass :: The getpass module asks for a password without showing it.

## Command lines and logging
Programs read their arguments and report what they do.
argparse :: The argparse module parses command-line options and arguments.
getopt :: The getopt module parses command-line options in the style of C.
logging :: The logging module records events of a running program.
logging.config = logging.config :: The logging.config module configures loggers from files and dictionaries.
logging.handlers = logging.handlers :: The logging.handlers module sends log records to many destinations.
cmd :: The cmd module builds line-oriented command interpreters.

# concurrency | Concurrent execution
Concurrent execution lets several pieces of work make progress at the same time.

## Threads and processes
Threads share memory while processes are isolated from one another.
threading :: The threading module runs code in threads and synchronises them.
multiprocessing :: The multiprocessing package runs code in separate processes.
multiprocessing.shared_memory = multiprocessing.shared_memory :: The shared_memory module shares memory between processes.
concurrent.futures = concurrent.futures :: The concurrent.futures module runs calls in pools of threads or processes.
subprocess :: The subprocess module starts other programs and talks to them.
sched :: The sched module runs events at planned times.
queue :: The queue module has queues that threads can share.
contextvars :: The contextvars module keeps values local to a context.

## Asynchronous programming
Asynchronous programs switch between tasks while they wait.
asyncio :: The asyncio package runs coroutines in an event loop.
selectors :: The selectors module waits for several streams at once.
select :: The select module waits until streams are ready for reading or writing.

# networking | Networking and interprocess communication
Networking modules let processes on one or several machines exchange data.

## Low-level networking
Sockets are the endpoints of network communication.
socket :: The socket module is the low-level network interface.
ssl :: The ssl module wraps sockets with TLS encryption.
selectors :: The selectors module waits for several streams at once.
ipaddress :: The ipaddress module works with network addresses.
signal :: The signal module handles asynchronous system events.
mmap :: The mmap module maps files into memory.

# internet-protocols | Internet protocols
Protocol modules implement clients and servers of widely used protocols.

## The web
Web modules address, request and serve resources.
urllib.parse = urllib.parse :: The urllib.parse module splits and joins URLs.
urllib.request = urllib.request :: The urllib.request module opens URLs.
urllib.error = urllib.error :: The urllib.error module has the exceptions of urllib.request.
urllib.robotparser = urllib.robotparser :: The robotparser module reads the rules websites give to robots.
http :: The http module has status codes and methods of HTTP.
http.client = http.client :: The http.client module is an HTTP client.
http.server = http.server :: The http.server module is a basic HTTP server.
http.cookies = http.cookies :: The http.cookies module represents HTTP state as cookies.
http.cookiejar = http.cookiejar :: The http.cookiejar module stores cookies for web clients.
wsgiref.simple_server = wsgiref.simple_server :: The simple_server module serves WSGI applications.
wsgiref.util = wsgiref.util :: The wsgiref.util module works with WSGI environments.

## Mail, files and remote calls
Other protocols carry mail, files and procedure calls.
smtplib :: The smtplib module sends mail with SMTP.
imaplib :: The imaplib module reads mail with IMAP.
poplib :: The poplib module reads mail with POP3.
ftplib :: The ftplib module transfers files with FTP.
socketserver :: The socketserver module is a framework for network servers.
xmlrpc.client = xmlrpc.client :: The xmlrpc.client module calls remote procedures with XML-RPC.
xmlrpc.server = xmlrpc.server :: The xmlrpc.server module serves XML-RPC calls.
uuid :: The uuid module creates universally unique identifiers.

# cryptography | Cryptographic services
Cryptographic services protect the integrity and secrecy of data.

## Hashes and secrets
Hashes identify data and secrets keep others out.
hashlib :: The hashlib module computes secure hashes and message digests.
hmac :: The hmac module authenticates messages with a key.
secrets :: The secrets module generates strong random numbers for passwords and tokens.

# localisation | Internationalisation
Internationalisation modules help programs speak the language of their users.

## Languages and conventions
Messages and formats depend on language and country.
gettext :: The gettext module translates messages.
locale :: The locale module follows local conventions for numbers, dates and sorting.

# development-tools | Development tools
Development tools help to write code that is documented, tested and typed.

## Testing
Tests run code and compare what it does with what it should do.
unittest :: The unittest package is a framework for automated tests.
unittest.mock = unittest.mock :: The unittest.mock module replaces parts of a system under test.
doctest :: The doctest module runs the examples in docstrings.

## Types and documentation
Annotations and docstrings describe code to readers and tools.
typing :: The typing module supports type hints.
pydoc :: The pydoc module generates documentation from docstrings.

# debugging | Debugging and profiling
Debugging and profiling tools show what a program does.

## Debugging
Debuggers stop a program and look inside.
pdb :: The pdb module is an interactive source code debugger.
topic/debugger = debugger commands :: Debugger commands step through code and inspect its state.
bdb :: The bdb module is the framework beneath debuggers.
faulthandler :: The faulthandler module dumps tracebacks after a crash.

## Profiling
Profilers measure time and memory.
timeit :: The timeit module times small pieces of code.
cProfile :: The cProfile module is a deterministic profiler with low overhead.
profile :: The profile module is a deterministic profiler in pure Python.
pstats :: The pstats module sorts and prints profiles.
trace :: The trace module follows the execution of statements.
tracemalloc :: The tracemalloc module traces memory allocations.

# runtime | Python runtime services
Runtime services concern the interpreter and how it treats objects.

## The interpreter
The interpreter has parameters, hooks and a memory.
sys :: The sys module has parameters and functions of the interpreter.
sysconfig :: The sysconfig module tells how the interpreter was built and installed.
site :: The site module sets up the search path at start.
atexit :: The atexit module calls functions when the interpreter exits.
gc :: The gc module controls the garbage collector.
warnings :: The warnings module issues and filters warnings.
traceback :: The traceback module formats and prints stack traces.

## Objects and contexts
These modules help to build and examine objects.
builtins :: The builtins module holds the functions and types that need no import.
contextlib :: The contextlib module makes and combines context managers.
abc :: The abc module defines abstract base classes.
inspect :: The inspect module examines live objects.

# importing | Importing modules
Importing modules find Python code, load it and run it.

## Finding and loading
Finders locate modules and loaders execute them.
importlib :: The importlib package implements the import statement.
importlib.abc = importlib.abc :: The importlib.abc module has abstract base classes of finders and loaders.
importlib.machinery = importlib.machinery :: The importlib.machinery module has the standard finders and loaders.
importlib.util = importlib.util :: The importlib.util module helps to write importers.
importlib.metadata = importlib.metadata :: The importlib.metadata module reads the metadata of installed packages.
importlib.resources = importlib.resources :: The importlib.resources module reads files inside packages.
pkgutil :: The pkgutil module supports packages.
runpy :: The runpy module locates and runs modules as scripts.
zipimport :: The zipimport module imports from ZIP archives.
modulefinder :: The modulefinder module finds the modules a script uses.

# language-services | Python language services
Language services work on Python source and its compiled form.

## Source code
Source code is split into tokens and parsed into trees.
ast :: The ast module represents Python code as abstract syntax trees.
tokenize :: The tokenize module splits Python source into tokens.
token :: The token module has the constants of the tokenizer.
keyword :: The keyword module lists the keywords of the language.
symtable :: The symtable module shows the symbol tables of the compiler.
tabnanny :: The tabnanny module finds ambiguous indentation.
pyclbr :: The pyclbr module lists the classes of a module without importing it.

## Compiled code
Compiled code is what the interpreter runs.
dis :: The dis module disassembles bytecode.
py_compile :: The py_compile module compiles one source file.
compileall :: The compileall module compiles all files of a directory tree.
pickletools :: The pickletools module analyses pickles.
code :: The code module provides interpreters that read from a console.
codeop :: The codeop module tells whether code is complete.
"""
