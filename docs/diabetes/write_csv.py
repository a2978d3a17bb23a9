"""Write scikit-learn's diabetes data as diabetes.csv, with names that say what the columns are.

442 patients, ten measurements, and how far the disease had gone a year later (Efron et al., 2004).
The data is public, so it is a safe place to learn; nothing else about it is made easy.
"""

from sklearn.datasets import load_diabetes

NAMES = {
    "s1": "cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "cholesterol_by_hdl",
    "s5": "log_triglycerides",
    "s6": "glucose",
    "target": "progression",
}

table = load_diabetes(as_frame=True, scaled=False).frame.rename(columns=NAMES)
table.astype({"age": int, "sex": int}).to_csv("diabetes.csv", index=False)
