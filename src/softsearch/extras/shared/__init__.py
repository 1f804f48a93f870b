"""What several extras need and no package outside: processes of trainings, Pareto fronts, served files. No extra."""
