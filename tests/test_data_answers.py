"""Recompute the answers of the three calculation panels from their prompts.

In: the shipped case files. Each `recompute_*` takes the numbers out of the prompt,
applies the named formula, and compares with what the rubric states. Not done here:
the format of the files, and whether a formula suits the patient.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
PANELS = ("clinical_calculations", "calculators_numerical", "calculators_conditional")
NUMBER = r"(?<![\d.,])(\d+(?:,\d{3})*(?:\.\d+)?)"


@dataclass(frozen=True)
class Case:
    """Hold the two texts of a case that a recomputation compares."""

    prompt: str
    items: tuple[str, ...]


def read_case(case_id: str) -> Case:
    """Read a shipped case by its id, whichever panel it is in."""
    (path,) = DATA.glob(f"*/cases/{case_id}.json")
    case = json.loads(path.read_text(encoding="utf-8"))
    items = tuple(str(item["text"]) for item in case["rubric_items"])
    return Case(prompt=str(case["prompt"]), items=items)


def numbers(template: str, text: str) -> tuple[float, ...]:
    """Return the numbers at the `#` signs of a template that fits `text` once."""
    pattern = NUMBER.join(re.escape(part) for part in template.split("#"))
    (match,) = re.finditer(pattern, text)
    return tuple(float(group.replace(",", "")) for group in match.groups())


def number(template: str, text: str) -> float:
    """Return the number at the one `#` sign of a template that fits `text` once."""
    (value,) = numbers(template, text)
    return value


def accepts(item: str, value: float) -> bool:
    """Tell whether the item's accept range contains the unrounded value and is narrow."""
    low, high = numbers("accept #–#", item)
    return low <= value <= high and high - low <= 0.1 * value


def cockcroft_gault(age: float, weight: float, scr: float) -> float:
    """Return a man's creatinine clearance in mL/min (Cockcroft and Gault 1976)."""
    return (140 - age) * weight / (72 * scr)


def ckd_epi_2021(age: float, scr: float, *, female: bool) -> float:
    """Return the estimated GFR in mL/min/1.73 m² (Inker 2021, creatinine)."""
    kappa, alpha, sex = (0.7, -0.241, 1.012) if female else (0.9, -0.302, 1.0)
    ratio = scr / kappa
    return 142 * math.pow(min(ratio, 1), alpha) * math.pow(max(ratio, 1), -1.200) * math.pow(0.9938, age) * sex


def meld_3(bili: float, na: float, inr: float, cr: float, alb: float) -> float:
    """Return a woman's MELD 3.0 before rounding (Kim 2021), inputs limited."""
    bili, inr, cr = max(bili, 1.0), max(inr, 1.0), min(max(cr, 1.0), 3.0)
    low_na = 137 - min(max(na, 125), 137)
    low_alb = 3.5 - min(max(alb, 1.5), 3.5)
    score = 1.33 + 4.56 * math.log(bili) + 0.82 * low_na - 0.24 * low_na * math.log(bili)
    score += 9.09 * math.log(inr) + 11.14 * math.log(cr)
    return score + 1.85 * low_alb - 1.83 * low_alb * math.log(cr) + 6


def recompute_norepinephrine_rate(case: Case) -> None:
    """Pump rate = dose × weight × 60 ÷ concentration."""
    weight = number("A #-kg woman", case.prompt)
    dose = number("norepinephrine at # mcg/kg/min", case.prompt)
    drug, volume = numbers("# mg of norepinephrine in a total volume of # mL", case.prompt)
    concentration = drug * 1000 / volume
    rate = dose * weight * 60 / concentration

    per_ml = numbers("is # mcg/mL (# mg/mL is equivalent)", case.items[0])
    assert (concentration, concentration / 1000) == per_ml
    assert round(rate, 2) == number("pump rate of # mL/h", case.items[1])
    assert accepts(case.items[1], rate)
    assert round(rate / 60, 2) == number("rate of about # mL/h", case.items[2])


def recompute_us_units(case: Case) -> None:
    """Creatinine ÷ 88.4, glucose × 18.0 and LDL cholesterol × 38.67 give mg/dL."""
    creatinine = number("creatinine # µmol/L", case.prompt) / 88.4
    glucose = number("glucose # mmol/L", case.prompt) * 18.0
    ldl = number("LDL cholesterol # mmol/L", case.prompt) * 38.67

    assert round(creatinine, 1) == number("creatinine to # mg/dL", case.items[0])
    assert round(glucose) == number("glucose to # mg/dL", case.items[1])
    assert round(ldl) == number("LDL cholesterol to # mg/dL", case.items[2])
    assert accepts(case.items[0], creatinine)
    assert accepts(case.items[1], glucose)
    assert accepts(case.items[2], ldl)


def recompute_parkland(case: Case) -> None:
    """Parkland: factor × kg × % burned, half of it within 8 hours of the burn."""
    weight = number("An #-kg man", case.prompt)
    burned = number("partial-thickness burns over #%", case.prompt)
    burned += number("full-thickness burns over #%", case.prompt)
    late = number("exactly # hours after the fire", case.prompt)
    factor = number("with # mL per kg per %", case.prompt)
    hours = number("until # hours after the burn", case.prompt)
    total = factor * weight * burned

    assert hours == 8
    stated = numbers("of # mL for the first 24 hours (# mL × # kg × #%", case.items[0])
    assert (total, factor, weight, burned) == stated
    rate = (total / 2 / (hours - late), total / 2, hours - late, hours)
    template = "rate of # mL/h, that is # mL over the # hours that remain of the first #"
    assert rate == numbers(template, case.items[1])
    wrong = (total / 2 / hours, hours)
    assert wrong == numbers("at # mL/h by starting the # hours", case.items[2])


def recompute_maintenance(case: Case) -> None:
    """4-2-1 rule: 4, 2 and 1 mL/kg/h for the first, second and further 10 kg."""
    weight = number("who weighs # kg", case.prompt)
    parts = (4 * min(weight, 10), 2 * min(max(weight - 10, 0), 10), max(weight - 20, 0))

    template = "of # mL/h (exact match required; # mL + # mL + # mL)"
    assert (sum(parts), *parts) == numbers(template, case.items[0])


def recompute_neutrophils(case: Case) -> None:
    """Neutrophil count = white cells × (segmented + bands) ÷ 100."""
    fever = number("temperature of # °C", case.prompt)
    white = number("count is # × 10⁹/L", case.prompt)
    segmented = number("#% segmented", case.prompt)
    bands = number("#% bands", case.prompt)
    count = white * (segmented + bands) / 100

    stated = numbers("count of # × 10⁹/L [# cells/µL]", case.items[0])
    assert (round(count, 2), round(count * 1000)) == stated
    assert accepts(case.items[0], count)
    # The branch: IDSA 2010, single temperature and count limits.
    assert numbers("≥# °C and his absolute neutrophil count is below #", case.items[1]) == (38.3, 0.5)
    assert fever >= 38.3 and count < 0.5
    assert "meets the definition" in case.items[1]


def recompute_sodium_excretion(case: Case) -> None:
    """FENa = 100 × urine Na × plasma Cr ÷ (plasma Na × urine Cr)."""
    plasma_na = number("Serum results are sodium # mEq/L", case.prompt)
    plasma_cr = number("and creatinine # mg/dL; her baseline", case.prompt)
    urine_na = number("urine sodium # mEq/L", case.prompt)
    urine_cr = number("urine creatinine # mg/dL", case.prompt)
    fena = 100 * urine_na * plasma_cr / (plasma_na * urine_cr)

    assert round(fena, 2) == number("sodium of #%", case.items[0])
    assert accepts(case.items[0], fena)
    assert fena < number("below #% suggests prerenal", case.items[1]) == 1


def recompute_oxygen_gradient(case: Case) -> None:
    """A–a gradient = FiO₂ × (PB − PH₂O) − PaCO₂ ÷ R − PaO₂."""
    fio2 = number("FiO₂ #", case.prompt)
    paco2, pao2 = numbers("PaCO₂ # mmHg, PaO₂ # mmHg", case.prompt)
    pb = number("barometric pressure in the department is # mmHg", case.prompt)
    ph2o = number("water vapor pressure of # mmHg", case.prompt)
    r = number("respiratory quotient of #", case.prompt)
    gradient = fio2 * (pb - ph2o) - paco2 / r - pao2
    sea_level = fio2 * (760 - ph2o) - paco2 / r - pao2

    assert round(gradient) == number("gradient of # mmHg", case.items[0])
    assert accepts(case.items[0], gradient)
    template = "of # mmHg, which gives a gradient of about # mmHg"
    assert (760, round(sea_level)) == numbers(template, case.items[1])


def recompute_stroke_score(case: Case) -> None:
    """CHA₂DS₂-VASc: C 1, H 1, A₂ 2 (65–74: 1), D 1, S₂ 2, V 1, female sex 1."""
    age = number("A #-year-old man", case.prompt)
    ejection = number("ejection fraction of #%", case.prompt)
    hba1c = number("HbA1c of #%", case.prompt)
    points = (
        int("heart failure" in case.prompt and ejection <= 40),
        int("hypertension treated" in case.prompt),
        2 if age >= 75 else int(age >= 65),
        2 * int("a transient ischemic attack" in case.prompt),
        int("symptomatic peripheral artery disease" in case.prompt),
    )
    diabetes = int(hba1c >= 6.5)

    assert sum(points) + diabetes == number("score is # (exact", case.items[0])
    assert list(points) == [int(p) for p in re.findall(r"\+(\d)", case.items[1])]
    assert number("age ≥# years", case.items[1]) == 75
    assert diabetes == 0 and "no point for diabetes" in case.items[1]


def recompute_meld_3(case: Case) -> None:
    """MELD 3.0 from bilirubin, sodium, INR, creatinine and albumin, limited."""
    assert "-year-old woman" in case.prompt
    na = number("serum sodium # mEq/L", case.prompt)
    score = meld_3(
        bili=number("total bilirubin # mg/dL", case.prompt),
        na=na,
        inr=number("INR #", case.prompt),
        cr=number("creatinine # mg/dL", case.prompt),
        alb=number("albumin # g/dL", case.prompt),
    )

    assert round(score) == number("score is # (exact", case.items[0])
    assert round(score, 1) == number("before rounding is #", case.items[0])
    template = "entered as # mEq/L, the lower limit of the score, in place of # mEq/L"
    assert (max(na, 125), na) == numbers(template, case.items[1])
    assert na < 125


def recompute_gfr_category(case: Case) -> None:
    """CKD-EPI 2021 from age, sex and creatinine, then the KDIGO category."""
    age = number("A #-year-old woman", case.prompt)
    scr = number("serum creatinine is # mg/dL", case.prompt)
    gfr = ckd_epi_2021(age, scr, female=True)

    assert round(gfr) == number("GFR of # mL/min", case.items[0])
    assert accepts(case.items[0], gfr)
    low, high = numbers("category G3a (#–# mL/min", case.items[1])
    assert (low, high) == (45, 59)
    assert low <= round(gfr) <= high


def recompute_wells(case: Case) -> None:
    """Wells: 1.5 each for heart rate, recent surgery and past clots; 3, 3, 1, 1."""
    age = number("A #-year-old woman", case.prompt)
    heart_rate = number("heart rate is # beats/min", case.prompt)
    surgery_weeks = number("general anesthesia # weeks ago", case.prompt)
    cancer_years = number("cancer was treated # years ago", case.prompt)
    d_dimer = number("D-dimer is # ng/mL FEU", case.prompt)
    score = 1.5 * (heart_rate > 100) + 1.5 * (surgery_weeks <= 4)
    score += 1.5 * ("never had a deep vein thrombosis or pulmonary" not in case.prompt)
    score += 3 * ("legs are neither swollen nor tender" not in case.prompt)
    score += 3 * ("more likely than pulmonary embolism" not in case.prompt)
    score += ("had no hemoptysis" not in case.prompt) + (cancer_years <= 0.5)

    assert score == number("Wells score is # (exact", case.items[0])
    assert numbers("above # beats/min # and surgery within # weeks #)", case.items[0]) == (100, 1.5, 4, 1.5)
    assert score <= number("PE unlikely (score ≤#)", case.items[0]) == 4
    stated = numbers("is # ng/mL FEU (# years × #)", case.items[1])
    assert age > 50 and (age * 10, age, 10) == stated
    assert d_dimer == number("because # ng/mL", case.items[2]) and d_dimer < age * 10
    assert "excluded without CT" in case.items[2]


def recompute_rivaroxaban_dose(case: Case) -> None:
    """Cockcroft-Gault with actual weight: 15 mg up to 50 mL/min, 20 mg above."""
    age = number("A #-year-old man", case.prompt)
    weight = number("weighs # kg", case.prompt)
    scr = number("serum creatinine is # mg/dL", case.prompt)
    clearance = cockcroft_gault(age, weight, scr)
    gfr = ckd_epi_2021(age, scr, female=False)
    dose, wrong_dose = (15, 20) if clearance <= 50 else (20, 15)

    assert round(clearance) == number("clearance of # mL/min (accept", case.items[0])
    assert accepts(case.items[0], clearance)
    assert dose == number("rivaroxaban dose of # mg once daily", case.items[1])
    assert number("clearance ≤# mL/min", case.items[1]) == 50
    assert (wrong_dose, 50) == numbers(
        "rivaroxaban # mg once daily, the dose for a creatinine clearance above #",
        case.items[2],
    )
    # The printed GFR is the trap: it is right, and falls in the other dose band.
    assert round(gfr) == number("GFR of # mL/min", case.prompt) and gfr > 50


def recompute_caspofungin_dose(case: Case) -> None:
    """Child-Pugh: one to three points for each of five findings; class B is 7–9."""
    bilirubin = number("total bilirubin # mg/dL", case.prompt)
    albumin = number("albumin # g/dL", case.prompt)
    inr = number("INR #", case.prompt)
    points = (
        1 + (bilirubin >= 2) + (bilirubin > 3),
        1 + (albumin <= 3.5) + (albumin < 2.8),
        1 + (inr >= 1.7) + (inr > 2.3),
        2 if "mild (slight) ascites" in case.prompt else 0,
        1 if "never had hepatic encephalopathy" in case.prompt else 0,
    )

    template = "score is # (exact integer match required: bilirubin #, albumin #, "
    template += "INR #, ascites #, encephalopathy #)"
    assert (sum(points), *points) == numbers(template, case.items[0])
    low, high = numbers("class B (score #–#", case.items[1])
    assert (low, high) == (7, 9)
    assert low <= sum(points) <= high
    daily = 35 if 7 <= sum(points) <= 9 else 50
    assert numbers("dose of # mg on day 1, followed by # mg once daily", case.items[2]) == (70, daily)


def recompute_winter(case: Case) -> None:
    """Gap = Na − Cl − HCO₃ + 2.5 × missing albumin; PaCO₂ = 1.5 × HCO₃ + 8 ± 2."""
    na = number("sodium # mEq/L", case.prompt)
    cl, hco3 = numbers("chloride # mEq/L, bicarbonate # mEq/L", case.prompt)
    albumin = number("albumin # g/dL", case.prompt)
    normal = number("taking # g/dL as the normal albumin", case.prompt)
    ph, paco2 = numbers("pH #, PaCO₂ # mmHg", case.prompt)
    gap = na - cl - hco3
    corrected = gap + 2.5 * (normal - albumin)
    expected = 1.5 * hco3 + 8

    template = "gap of # mEq/L (# mEq/L before correction, +# mEq/L for each # g/dL of "
    stated = numbers(template + "albumin below #)", case.items[0])
    assert (corrected, gap, 2.5, 1, normal) == stated
    template = "PaCO₂ of # mmHg by Winter's formula (range #–# mmHg)"
    assert (expected, expected - 2, expected + 2) == numbers(template, case.items[1])
    assert paco2 == number("measured PaCO₂ of # mmHg", case.items[2]) > expected + 2
    assert "concurrent respiratory acidosis" in case.items[2]
    # Henderson-Hasselbalch: the gas in the prompt agrees with itself.
    assert ph == round(6.1 + math.log10(hco3 / (0.03 * paco2)), 2)


def recompute_curb_65(case: Case) -> None:
    """CURB-65: confusion, BUN > 19, rate ≥ 30, pressure < 90 or ≤ 60, age ≥ 65."""
    age = number("A #-year-old woman", case.prompt)
    mental, mental_of = numbers("scores # of # on the abbreviated", case.prompt)
    breaths = number("respiratory rate is # breaths/min", case.prompt)
    systolic, diastolic = numbers("blood pressure is #/# mmHg", case.prompt)
    bun = number("BUN # mg/dL", case.prompt)
    score = (mental <= 8) + (bun > 19) + (breaths >= 30)
    score += (systolic < 90 or diastolic <= 60) + (age >= 65)

    assert mental_of == 10 and score == number("score is # (exact", case.items[0])
    template = "BUN above # mg/dL, diastolic blood pressure ≤# mmHg, and age ≥# years"
    assert numbers(template, case.items[0]) == (19, 60, 65)
    assert bun > 19 and diastolic <= 60 and age >= 65
    low, high = numbers("high-severity group (score #–#)", case.items[1])
    assert (low, high) == (3, 5) and low <= score <= high
    assert "in the hospital as severe pneumonia" in case.items[1]
    assert "treatment at home" in case.items[2]


RECOMPUTATIONS: dict[str, Callable[[Case], None]] = {
    "84e32fd8edd2faeace41d869050e4ed0": recompute_norepinephrine_rate,
    "e67dd7beb9510daf9b55c72230eb4265": recompute_us_units,
    "9c17ac9688559820044c5aa104cdead8": recompute_parkland,
    "e3996f9b3d0bd3820661e3703340b4dd": recompute_maintenance,
    "3f9ca874d89edc83865e481cbde7f293": recompute_neutrophils,
    "557d12c4c9719f383f278930e702e0ea": recompute_sodium_excretion,
    "bf0020f4bceeaefd54f5a10591559b77": recompute_oxygen_gradient,
    "f7c3504c67afdc55e3ce03135945a63e": recompute_stroke_score,
    "767b9e324e5d33aa0ae943044ecce075": recompute_meld_3,
    "7777218baa0c487a32ae880387d344f5": recompute_gfr_category,
    "7cb425021b9dd5296ab866ad0009a901": recompute_wells,
    "654aaa1ae52da05095776c6794692e40": recompute_rivaroxaban_dose,
    "387326ef073f053b1eb61041958bbfde": recompute_caspofungin_dose,
    "c45b99496ea93afc2ce31d7605ff6e30": recompute_winter,
    "1f5ce230f62420b34c2422a887462a68": recompute_curb_65,
}


@pytest.mark.parametrize(
    "case_id",
    [pytest.param(case_id, id=f"{recompute.__name__}-{case_id[:8]}") for case_id, recompute in RECOMPUTATIONS.items()],
)
def test_rubric_states_the_answer_that_follows_from_the_prompt(case_id: str) -> None:
    """The numbers and branches in a rubric are those its prompt leads to."""
    RECOMPUTATIONS[case_id](read_case(case_id))


def test_every_calculation_case_has_a_recomputation() -> None:
    """A calculation case cannot be shipped without its arithmetic being checked."""
    shipped = {path.stem for p in PANELS for path in DATA.glob(f"{p}/cases/*.json")}

    assert shipped == set(RECOMPUTATIONS)
