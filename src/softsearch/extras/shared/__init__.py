"""What several extras need and no package outside: trainings in separate processes, Pareto fronts. No extra itself."""
