"""Export formats for other programs: CTranslate2 and Argos Translate."""
