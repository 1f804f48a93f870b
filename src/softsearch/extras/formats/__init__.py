"""Export formats of other programs: CTranslate2 and Argos Translate."""
