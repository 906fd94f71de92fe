"""Linear algebra, judged by residuals."""
