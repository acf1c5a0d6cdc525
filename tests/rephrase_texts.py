"""Sources with faithful rewritings in every style, written by hand, and faults to plant into the rewritings.

A fault is (kind, pattern, replacement); it is planted into every rewriting in which the pattern is found.
"""

from __future__ import annotations

CACHE = """\
## Retries

The client sends at most 5 requests in parallel. A request that fails is repeated after 30 seconds, but it is not repeated when \
the server answers with `404`. Kestrel servers usually answer faster than Heron servers. Since 12 March 2021 a reply may be cached \
for 2 hours.

```python
client.retry(limit=5, wait=30)
```
"""

WHALES = """\
Blue whales reach a length of 30 m and weigh up to 190 t. They feed on krill and hardly ever eat fish. The Antarctic population \
was larger than the Pacific population before whaling began in 1904. Scientists in Norway believe that the numbers are probably \
growing by 7 percent a year, although this has never been confirmed for the Pacific.
"""

HEAPS = """\
`heapq.heappush` adds an item to the heap and keeps the smallest item first. The heap must be a list. `heapq.heappop` raises \
`IndexError` if the heap is empty, and it never sorts the whole list. Popping 1,000 items takes about 4 ms. A sorted list is \
slower than a heap when items arrive one by one.

>>> heapq.heappop([1, 3, 2])
1
"""

MEDICINE = """\
Adults should take 250 mg of Velorin twice a day for 10 days. The tablets must not be taken with milk, because milk may lower the \
dose that reaches the blood. Velorin is stronger than Marexin. Doctors in Geneva reported on 3 May 2018 that some patients felt \
dizzy in the first 48 hours. Children cannot take it unless a doctor agrees.
"""

BRIDGE = """\
The Tarn Bridge was opened by Queen Ada on 14 June 1887. It carries two tracks and is 640 m long, which is longer than the Osk \
Bridge. Trains heavier than 900 t are not allowed on it. Engineers check the cables at least every 6 months. The northern tower \
might sink by 3 mm a year, and the cause is still unknown.
"""

BATTERY = """\
The pack stores 80 kWh and charges in 45 minutes at a station of Lumo Energy. It should not be charged below -10 °C. Cells from \
Daegu last longer than cells from Turin, but only when they are kept cool. In 2020 Lumo Energy replaced 1,200 packs without a \
fee. The firmware setting `charge_limit` is 90 percent by default and can be changed by the driver.
"""

SOURCES = {"cache": CACHE, "whales": WHALES, "heaps": HEAPS, "medicine": MEDICINE, "bridge": BRIDGE, "battery": BATTERY}

_CODE = "\n```python\nclient.retry(limit=5, wait=30)\n```\n"
_SESSION = "\n>>> heapq.heappop([1, 3, 2])\n1\n"

FAITHFUL: dict[str, dict[str, str]] = {
    "cache": {
        "encyclopedic": "Retries are limited. In parallel, the client sends at most 5 requests. After 30 seconds a failed request is repeated, but it is not repeated if the server has answered with `404`. Servers of the Kestrel kind usually answer faster than Heron servers. Since 12 March 2021, replies may be cached for 2 hours.\n" + _CODE,
        "questions": "Question: How many requests are sent in parallel?\nAnswer: The client sends at most 5 requests in parallel.\n\nQuestion: What about a request that fails?\nAnswer: It is repeated after 30 seconds. When the server answers with `404`, the request is not repeated.\n\nQuestion: Which servers answer faster?\nAnswer: Kestrel servers usually answer faster than Heron servers.\n\nQuestion: Are replies cached in retries?\nAnswer: Since 12 March 2021 a reply may be cached for 2 hours.\n" + _CODE,
        "textbook": "# Retries\n\nDefinition. A retry repeats a request that fails, after 30 seconds. A request is not repeated when the answer of the server is `404`.\n\nRemark. At most 5 requests are sent in parallel by the client.\n\nRemark. Kestrel servers usually answer faster than Heron servers do. Since 12 March 2021 a reply may be cached for 2 hours.\n" + _CODE,
        "dialogue": "Student: How does the client send its requests?\nTeacher: It sends at most 5 requests in parallel. A request that fails is repeated after 30 seconds, but not when the server answers with `404`.\n\nStudent: Are all servers the same?\nTeacher: No. Kestrel servers usually answer faster than Heron servers. And since 12 March 2021 a reply may be cached for 2 hours.\n\nStudent: Show me the retry.\n" + _CODE,
        "bullets": "**Retries**\n\n- The client sends at most 5 requests in parallel\n- A request that fails is repeated after 30 seconds\n- It is not repeated when the server answers with `404`\n- Kestrel servers usually answer faster than Heron servers\n- Since 12 March 2021 a reply may be cached for 2 hours\n" + _CODE,
        "plain": "Retries\n\nThe client sends requests in parallel, but at most 5. If a request fails, it is repeated after 30 seconds. It is not repeated if the server answers with `404`. Kestrel servers are usually faster to answer than Heron servers. Since 12 March 2021, a reply may be cached. It may be cached for 2 hours.\n" + _CODE,
    },
    "whales": {
        "encyclopedic": "Blue whales reach 30 m in length and weigh up to 190 t. Krill is what they feed on; fish they hardly ever eat. Before whaling began in 1904, the Antarctic population was larger than the Pacific population. The belief of scientists in Norway is that the numbers are probably growing by 7 % a year, but this has never been confirmed for the Pacific.",
        "questions": "Question: How long and heavy are blue whales?\nAnswer: Blue whales reach a length of 30 m and weigh up to 190 t.\n\nQuestion: What do they eat?\nAnswer: They feed on krill, and hardly ever eat fish.\n\nQuestion: Which population was larger?\nAnswer: The Antarctic population was larger than the Pacific population before whaling began in 1904.\n\nQuestion: Are the numbers growing?\nAnswer: Scientists in Norway believe that the numbers are probably growing by 7 percent a year. This has never been confirmed for the Pacific.",
        "textbook": "Fact. Blue whales reach a length of 30 m; they weigh up to 190 t.\n\nFact. They feed on krill and hardly ever eat fish.\n\nRemark. Before whaling began in 1904 the Antarctic population was larger than the Pacific population. The belief of scientists in Norway is that the numbers are probably growing by 7 percent a year, although for the Pacific this has never been confirmed.",
        "dialogue": "Student: Tell me about blue whales.\nTeacher: They reach a length of 30 m and weigh up to 190 t. They feed on krill and hardly ever eat fish.\n\nStudent: Where were most of them?\nTeacher: The Antarctic population was larger than the Pacific population before whaling began in 1904. Scientists in Norway believe that the numbers are probably growing, by 7 percent a year, although this has never been confirmed for the Pacific.",
        "bullets": "- Blue whales reach a length of 30 m\n- They weigh up to 190 t\n- They feed on krill and hardly ever eat fish\n- The Antarctic population was larger than the Pacific population before whaling began in 1904\n- Scientists in Norway believe that the numbers are probably growing by 7 percent a year\n- This has never been confirmed for the Pacific",
        "plain": "Blue whales get 30 m long. They weigh up to 190 t. They feed on krill. They hardly ever eat fish. Whaling began in 1904. Before that, the Antarctic population was larger than the Pacific population. Scientists in Norway believe that the numbers are probably growing. They believe it is by 7 percent a year. For the Pacific this has never been confirmed.",
    },
    "heaps": {
        "encyclopedic": "`heapq.heappush` adds items to the heap, which keeps the smallest item first; the heap must be a list. If the heap is empty, `heapq.heappop` raises `IndexError`, and the whole list is never sorted by it. To pop 1,000 items takes about 4 ms. When items arrive one by one, a sorted list is slower than a heap.\n" + _SESSION,
        "questions": "Question: What does `heapq.heappush` do?\nAnswer: It adds an item to the heap and keeps the smallest item first. The heap must be a list.\n\nQuestion: What does `heapq.heappop` do with an empty heap?\nAnswer: `heapq.heappop` raises `IndexError` if the heap is empty. It never sorts the whole list.\n\nQuestion: How long does popping take?\nAnswer: Popping 1,000 items takes about 4 ms. A sorted list is slower than a heap when items arrive one by one.\n" + _SESSION,
        "textbook": "Definition. `heapq.heappush` adds an item to the heap and keeps the smallest item first. The heap must be a list.\n\nDefinition. `heapq.heappop` raises `IndexError` if the heap is empty; it never sorts the whole list.\n\nRemark. Popping 1,000 items takes about 4 ms. When items arrive one by one, a sorted list is slower than a heap.\n" + _SESSION,
        "dialogue": "Student: How do I add an item?\nTeacher: `heapq.heappush` adds an item to the heap and keeps the smallest item first. Remember that the heap must be a list.\n\nStudent: And if the heap is empty?\nTeacher: Then `heapq.heappop` raises `IndexError`. It never sorts the whole list. Popping 1,000 items takes about 4 ms, and a sorted list is slower than a heap when items arrive one by one.\n" + _SESSION,
        "bullets": "- `heapq.heappush` adds an item to the heap\n- It keeps the smallest item first\n- The heap must be a list\n- `heapq.heappop` raises `IndexError` if the heap is empty\n- It never sorts the whole list\n- Popping 1,000 items takes about 4 ms\n- A sorted list is slower than a heap when items arrive one by one\n" + _SESSION,
        "plain": "`heapq.heappush` adds an item to a heap. The smallest item is kept first. The heap must be a list. If the heap is empty, `heapq.heappop` raises `IndexError`. The whole list is never sorted. Popping 1,000 items takes about 4 ms. Say items arrive one by one. Then a sorted list is slower than a heap.\n" + _SESSION,
    },
    "medicine": {
        "encyclopedic": "For 10 days, adults should take 250 mg of Velorin twice a day. The tablets must not be taken with milk, since milk may lower the dose reaching the blood. Velorin is stronger than Marexin. On 3 May 2018 doctors in Geneva reported that some patients felt dizzy during the first 48 hours. Unless a doctor agrees, children cannot take it.",
        "questions": "Question: How much Velorin should adults take?\nAnswer: Adults should take 250 mg of Velorin twice a day for 10 days.\n\nQuestion: Is milk allowed?\nAnswer: The tablets must not be taken with milk, because milk may lower the dose that reaches the blood.\n\nQuestion: Which one is stronger?\nAnswer: Velorin is stronger than Marexin.\n\nQuestion: What did doctors report?\nAnswer: Doctors in Geneva reported on 3 May 2018 that some patients felt dizzy in the first 48 hours. Children cannot take it unless a doctor agrees.",
        "textbook": "Fact. Adults should take 250 mg of Velorin twice a day, for 10 days. Velorin tablets must not be taken with milk: milk may lower the dose that reaches the blood.\n\nRemark. Velorin is stronger than Marexin.\n\nRemark. Some patients felt dizzy in the first 48 hours, as doctors in Geneva reported on 3 May 2018. Children cannot take it unless a doctor agrees.",
        "dialogue": "Student: How is Velorin taken?\nTeacher: Adults should take 250 mg of Velorin twice a day for 10 days, and the tablets must not be taken with milk. Milk may lower the dose that reaches the blood.\n\nStudent: Is Marexin the same?\nTeacher: Velorin is stronger than Marexin. Doctors in Geneva reported on 3 May 2018 that some patients felt dizzy in the first 48 hours.\n\nStudent: And children?\nTeacher: Children cannot take it unless a doctor agrees.",
        "bullets": "- Adults should take 250 mg of Velorin twice a day for 10 days\n- The tablets must not be taken with milk\n- Milk may lower the dose that reaches the blood\n- Velorin is stronger than Marexin\n- Doctors in Geneva reported on 3 May 2018 that some patients felt dizzy in the first 48 hours\n- Children cannot take it unless a doctor agrees",
        "plain": "Adults should take Velorin twice a day. They should take 250 mg for 10 days. The tablets must not be taken with milk. Milk may lower the dose that reaches the blood. Velorin is stronger than Marexin. Doctors in Geneva made a report on 3 May 2018. Some patients felt dizzy in the first 48 hours. Children cannot take it unless a doctor agrees.",
    },
    "bridge": {
        "encyclopedic": "On 14 June 1887 Queen Ada opened the Tarn Bridge. The bridge carries 2 tracks and, at 640 m, is longer than the Osk Bridge. On it, trains heavier than 900 t are not allowed. The cables are checked by engineers at least every 6 months. The northern tower might sink by 3 mm a year; the cause is still unknown.",
        "questions": "Question: Who opened the Tarn Bridge?\nAnswer: The Tarn Bridge was opened by Queen Ada on 14 June 1887.\n\nQuestion: How long is it?\nAnswer: It carries two tracks and is 640 m long. It is longer than the Osk Bridge.\n\nQuestion: Which trains are allowed?\nAnswer: Trains heavier than 900 t are not allowed on it.\n\nQuestion: How is it looked after?\nAnswer: Engineers check the cables at least every 6 months. The northern tower might sink by 3 mm a year, and the cause is still unknown.",
        "textbook": "Fact. The Tarn Bridge, opened by Queen Ada on 14 June 1887, carries two tracks. It is 640 m long, longer than the Osk Bridge.\n\nRemark. Trains heavier than 900 t are not allowed on the bridge. At least every 6 months, engineers check the cables.\n\nRemark. The northern tower might sink by 3 mm a year. The cause is still unknown.",
        "dialogue": "Student: When was the Tarn Bridge opened?\nTeacher: It was opened by Queen Ada on 14 June 1887. It carries two tracks and is 640 m long, longer than the Osk Bridge. Trains heavier than 900 t are not allowed on it.\n\nStudent: Is it safe?\nTeacher: Engineers check the cables at least every 6 months. The northern tower might sink by 3 mm a year, and the cause is still unknown.",
        "bullets": "- The Tarn Bridge was opened by Queen Ada on 14 June 1887\n- It carries two tracks\n- It is 640 m long, which is longer than the Osk Bridge\n- Trains heavier than 900 t are not allowed on it\n- Engineers check the cables at least every 6 months\n- The northern tower might sink by 3 mm a year\n- The cause is still unknown",
        "plain": "Queen Ada opened the Tarn Bridge on 14 June 1887. It carries two tracks. It is 640 m long. That is longer than the Osk Bridge. Trains heavier than 900 t are not allowed on it. Engineers check the cables. They do so at least every 6 months. The northern tower might sink by 3 mm a year. The cause is still unknown.",
    },
    "battery": {
        "encyclopedic": "The pack stores 80 kWh. At a station of Lumo Energy it charges in 45 minutes. It should not be charged below -10 °C. Cells from Daegu last longer than those from Turin, but only if they are kept cool. Without a fee, Lumo Energy replaced 1200 packs in 2020. By default the firmware setting `charge_limit` is 90 %, and the driver can change it.",
        "questions": "Question: What does the pack store?\nAnswer: The pack stores 80 kWh and charges in 45 minutes at a station of Lumo Energy. It should not be charged below -10 °C.\n\nQuestion: Which cells last longer?\nAnswer: Cells from Daegu last longer than cells from Turin, but only when they are kept cool.\n\nQuestion: What did Lumo Energy replace?\nAnswer: In 2020 Lumo Energy replaced 1,200 packs without a fee.\n\nQuestion: What is `charge_limit`?\nAnswer: The firmware setting `charge_limit` is 90 percent by default and can be changed by the driver.",
        "textbook": "Fact. The pack stores 80 kWh and charges in 45 minutes at a station of Lumo Energy; below -10 °C it should not be charged.\n\nRemark. Cells from Daegu last longer than cells from Turin, but only when kept cool.\n\nRemark. In 2020, 1,200 packs were replaced by Lumo Energy without a fee.\n\nDefinition. `charge_limit` is a firmware setting. It is 90 percent by default and can be changed by the driver.",
        "dialogue": "Student: How much does the pack store?\nTeacher: It stores 80 kWh and charges in 45 minutes at a station of Lumo Energy. It should not be charged below -10 °C.\n\nStudent: Are all cells alike?\nTeacher: Cells from Daegu last longer than cells from Turin, but only when they are kept cool. In 2020 Lumo Energy replaced 1,200 packs without a fee.\n\nStudent: Is there a firmware setting?\nTeacher: The firmware setting `charge_limit` is 90 percent by default and can be changed by the driver.",
        "bullets": "- The pack stores 80 kWh\n- It charges in 45 minutes at a station of Lumo Energy\n- It should not be charged below -10 °C\n- Cells from Daegu last longer than cells from Turin, but only when they are kept cool\n- In 2020 Lumo Energy replaced 1,200 packs without a fee\n- The firmware setting `charge_limit` is 90 percent by default\n- It can be changed by the driver",
        "plain": "The pack stores 80 kWh. It charges in 45 minutes at a station of Lumo Energy. Below -10 °C it should not be charged. Cells from Daegu last longer than cells from Turin. That is true only when they are kept cool. In 2020 Lumo Energy replaced 1,200 packs. It did so without a fee. There is a firmware setting, `charge_limit`. By default it is 90 percent. The driver can change it.",
    },
}  # fmt: skip

NEW_CLAIM = "\n\nThe design won a prize for its elegance and inspired many imitators."
FAULTS: dict[str, list[tuple[str, str, str]]] = {
    "cache": [
        ("negation", r"\bis not repeated", "is repeated"), ("negation", r"but not when the server", "and also when the server"),
        ("number", r"\b30 seconds", "40 seconds"), ("number", r"404", "500"), ("unit", r"2 hours", "2 days"),
        ("swapped", r"Kestrel(.{1,80})Heron", r"Heron\1Kestrel"), ("hedge", r"\busually ", ""), ("hedge", r"may be cached", "is cached"),
        ("dropped", r"[^.\n]*Kestrel[^.\n]*\.?", ""), ("code", r"wait=30\)", "wait=30 )"), ("code", r"limit=5", "limit=6"),
        ("date", r"12 March 2021", "12 May 2021"), ("comparison", r"faster", "slower"), ("comparison", r"at most", "at least"),
    ],
    "whales": [
        ("negation", r"has never been confirmed", "has been confirmed"), ("number", r"190 t", "150 t"), ("unit", r"30 m\b", "30 km"),
        ("swapped", r"Antarctic(.{1,60})Pacific", r"Pacific\1Antarctic"), ("hedge", r"probably ", ""),
        ("dropped", r"[^.\n;]*krill[^.\n]*\.?", ""), ("date", r"1904", "1940"), ("comparison", r"larger than", "smaller than"),
        ("comparison", r"\bbefore whaling", "after whaling"),
    ],
    "heaps": [
        ("negation", r"it never sorts", "it always sorts"), ("negation", r"is never sorted", "is sorted"), ("number", r"1,000", "10,000"),
        ("unit", r"4 ms", "4 s"), ("hedge", r"about 4", "4"), ("swapped", r"`heapq.heappush`(.{1,400}?)`heapq.heappop`", r"`heapq.heappop`\1`heapq.heappush`"),
        ("dropped", r"[^.\n;]*must be a list[.]?", ""), ("code", r"heappop\(\[1, 3, 2\]\)", "heappop([1, 2, 3])"), ("code", r"\n1\n", "\n2\n"),
        ("comparison", r"slower than", "faster than"), ("comparison", r"smallest", "largest"), ("hedge", r"must be a list", "can be a list"),
        ("entity", r"IndexError", "KeyError"),
    ],
    "medicine": [
        ("negation", r"must not be taken", "must be taken"), ("negation", r"[Cc]hildren cannot take", "Children can take"), ("number", r"10 days", "14 days"),
        ("unit", r"250 mg", "250 g"), ("swapped", r"Velorin is stronger than Marexin", "Marexin is stronger than Velorin"),
        ("hedge", r"milk may lower", "milk lowers"), ("hedge", r"Milk may lower", "Milk lowers"), ("hedge", r"should take", "take"),
        ("dropped", r"[^.\n]*dizzy[^.\n]*\.?", ""), ("date", r"3 May 2018", "3 May 2019"), ("comparison", r"stronger", "weaker"),
        ("hedge", r"unless a doctor agrees", "and a doctor agrees"), ("entity", r"Geneva", "Zurich"),
    ],
    "bridge": [
        ("negation", r"are not allowed", "are allowed"), ("number", r"900 t", "800 t"), ("unit", r"3 mm", "3 cm"),
        ("swapped", r"Tarn Bridge(.{1,300}?)Osk Bridge", r"Osk Bridge\1Tarn Bridge"), ("hedge", r"might sink", "sinks"),
        ("dropped", r"[^.\n]*check the cables[^.\n]*\.?", ""), ("date", r"14 June 1887", "14 July 1887"), ("comparison", r"longer than", "shorter than"),
        ("comparison", r"at least every", "at most every"), ("entity", r"Queen Ada", "Queen Eva"), ("comparison", r"heavier", "lighter"),
    ],
    "battery": [
        ("negation", r"should not be charged", "should be charged"), ("negation", r"without a fee", "with a fee"), ("number", r"45 minutes", "35 minutes"),
        ("unit", r"80 kWh", "80 MWh"), ("unit", r"45 minutes", "45 hours"), ("swapped", r"Daegu(.{1,60})Turin", r"Turin\1Daegu"), ("hedge", r"\bonly ", ""),
        ("dropped", r"[^.\n]*from Turin[^.\n]*\.?", ""), ("date", r"2020", "2021"), ("comparison", r"longer than", "shorter than"),
        ("entity", r"charge_limit", "charge_level"), ("comparison", r"below", "above"),
    ],
}  # fmt: skip
EVERYWHERE: list[tuple[str, str]] = [  # (kind, what is added)
    ("added", NEW_CLAIM),
    ("citation", "\n\nSee Halloran et al. for the measurements."),
    ("citation", " [12]"),
    ("citation", "\n\nSource: https://example.org/paper"),
    ("meta", "\n\nI have rephrased the passage as you asked."),
]
ALLOWED = {  # kind -> reasons that name it
    "negation": {"negation", "modality"}, "number": {"number", "entity", "code"}, "unit": {"unit", "entity"}, "swapped": {"order", "comparison", "entity"},
    "hedge": {"modality"}, "dropped": {"dropped", "entity", "number", "date", "negation", "modality", "comparison"},
    "code": {"code"}, "date": {"date", "number"}, "comparison": {"comparison"}, "entity": {"entity"}, "added": {"added"},
    "citation": {"citation", "code"}, "meta": {"form"}, "injection": {"injection"},
}  # fmt: skip
