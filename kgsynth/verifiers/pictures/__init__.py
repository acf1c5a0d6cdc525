"""Pictures for the verifier `picture`: rendering documents, and measuring how far two renderings are apart.

Nothing is imported here: the modules need numpy, scipy, scikit-image and pillow (`pip install 'kgsynth[verify]'`).
"""
