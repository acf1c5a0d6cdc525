"""Small worlds for the verifier `world`: their files, the checks of their final state, their databases."""
