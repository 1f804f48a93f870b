"""From YAML to checked objects: composition, options, validation and instantiation."""
