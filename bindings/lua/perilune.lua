return require '_perilune'
