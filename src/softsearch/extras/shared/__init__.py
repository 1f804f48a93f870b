"""What several extras need and no package outside: trainings in processes, Pareto fronts, files for the server. No extra itself."""
