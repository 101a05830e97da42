"""The supported syntax as data: the same question in SQL and in Python, side by side; and what is refused, with a hint.

docs/sql.md is rendered from here, and a test asks every row both ways.
"""

from __future__ import annotations

from dataclasses import dataclass

from sordino.query.aggregates.registry import kinds

__all__ = ["REFUSED", "Refused", "Supported", "render", "supported"]

_COUNTED = "SELECT COUNT(*) AS n FROM visits WHERE "


@dataclass(frozen=True)
class Supported:
    """One form; `sql` and `python` ask the same question, whole or as a part of one."""

    section: str
    what: str
    sql: str
    python: str
    note: str = ""

    @property
    def whole_sql(self) -> str:
        """The example as a complete SELECT."""
        match self.section:
            case "Conditions":
                return _COUNTED + self.sql
            case "Values":
                return _COUNTED + self.sql + " IS NULL"
            case "Aggregates":
                return " ".join(("SELECT", self.sql, "AS n FROM visits"))
            case _:
                return self.sql

    @property
    def whole_python(self) -> str:
        """The example as a complete question."""
        match self.section:
            case "Conditions":
                return f'question("visits").where({self.python}).agg(n=so.count())'
            case "Values":
                return f'question("visits").where(({self.python}).is_null()).agg(n=so.count())'
            case "Aggregates":
                return f'question("visits").agg(n={self.python})'
            case _:
                return self.python


@dataclass(frozen=True)
class Refused:
    """One form that is refused, and words of the hint that its error gives."""

    what: str
    sql: str
    hint: str


def _rows(section: str, *rows: tuple[str, ...]) -> tuple[Supported, ...]:
    return tuple(Supported(section, *row) for row in rows)


_ROWS: tuple[Supported, ...] = (
    *_rows("Questions",
        ("count", "SELECT COUNT(*) AS n FROM visits", 'question("visits").agg(n=so.count())'),
        ("filter", "SELECT COUNT(*) AS n FROM visits WHERE age >= 65 AND ward = 'A'",
         'question("visits").where("age >= 65", so.col("ward") == "A").agg(n=so.count())',
         "several conditions are joined by AND"),
        ("group", "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY ward",
         'question("visits").group_by("ward").agg(n=so.count(), cost=so.mean("cost"))',
         "GROUP BY takes expressions, output names or places"),
        ("histogram", "SELECT BUCKET(age, 10) AS decade, COUNT(*) AS n FROM visits GROUP BY decade",
         'question("visits").group_by(decade=so.bucket("age", 10)).agg(n=so.count())'),
        ("missing keys", "SELECT COALESCE(ward, 'other') AS place, COUNT(*) AS n FROM visits GROUP BY 1",
         'question("visits").group_by(place=so.coalesce("ward", "other")).agg(n=so.count())',
         "rows with a missing key are in no group otherwise"),
        ("having, order, limit",
         "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 3 OFFSET 1",
         'question("visits").group_by("ward").agg(n=so.count()).having("n > 100").order_by("-n").limit(3, offset=1)',
         "applied to the noisy answer, hence free"),
        ("having, order by others", "SELECT ward, AVG(cost) AS cost FROM visits GROUP BY ward HAVING COUNT(*) > 100",
         'question("visits").group_by("ward").agg(cost=so.mean("cost")).having("COUNT(*) > 100")',
         "released with noise as if selected, and not shown"),
        ("join a public table",
         "SELECT w.region, COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.name GROUP BY w.region",
         'question("visits").join("wards", on={"ward": "name"}).group_by(so.col("region", "wards")).agg(n=so.count())',
         "the first table is asked; JOIN drops rows that find nothing"),
        ("left join", "SELECT COUNT(*) AS n FROM visits LEFT JOIN wards USING (ward) WHERE wards.region IS NULL",
         'question("visits").join("wards", on="ward", how="left").where("wards.region IS NULL").agg(n=so.count())',
         "LEFT JOIN keeps rows that find nothing"),
    ),
    *_rows("Persons",
        ("join on the person", "SELECT sex, AVG(cost) AS cost FROM visits JOIN patients USING (patient_id) GROUP BY sex",
         'question("visits").join("patients", on="patient_id").group_by("sex").agg(cost=so.mean("cost"))',
         "both tables have the same persons; LEFT JOIN, too; ON may add conditions; FROM visits, patients WHERE "
         "visits.patient_id = patients.patient_id, too"),
        ("one row per person",
         "SELECT n, COUNT(*) AS persons FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS "
         "per_person GROUP BY n", 'question("visits").per_person(n=so.count()).group_by("n").agg(persons=so.count())',
         "the least noise: one person is one row; WITH per_person AS (...), too"),
        ("bounds within a person",
         "SELECT AVG(total) AS m FROM (SELECT patient_id, CLAMP(SUM(cost), 0, 9000) AS total FROM visits GROUP BY "
         "patient_id) AS per_person",
         'question("visits").per_person(total=so.sum("cost").clamp(0, 9000)).agg(m=so.mean("total"))',
         "COUNT and SUM are cut to what max_rows rows reach unless CLAMP says otherwise"),
        ("also within a person",
         "SELECT COUNT(*) AS n FROM (SELECT patient_id, MAX(cost) AS top FROM visits GROUP BY patient_id) AS per_person "
         "WHERE top > 900", 'question("visits").per_person(top=so.max("cost")).where("top > 900").agg(n=so.count())',
         "MIN, MAX, ANY_VALUE (the smallest), COUNT(DISTINCT ward), AVG, MEDIAN, QUANTILE, STDDEV, BOOL_OR, BOOL_AND; "
         "HAVING"),
        ("who is among others",
         "SELECT COUNT(*) AS n FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE sex = 'f')",
         'question("visits").where(so.col("patient_id").isin(question("patients").where(so.col("sex") == '
         '"f").select("patient_id"))).agg(n=so.count())', "NOT IN, and EXISTS with the person of both, too"),
        ("rows in order",
         "SELECT AVG(cost) AS m FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day DESC) AS k FROM "
         "visits) AS visits WHERE k = 1",
         'question("visits").window(k=so.row_number(), order_by="-day").where("k = 1").agg(m=so.mean("cost"))',
         "LAG, LEAD, FIRST_VALUE, running COUNT and SUM; ties are broken by all columns"),
        ("the rows around one",
         "SELECT AVG(three) AS m FROM (SELECT *, SUM(cost) OVER (PARTITION BY patient_id ORDER BY day ROWS BETWEEN 2 "
         "PRECEDING AND CURRENT ROW) AS three FROM visits) AS visits",
         'question("visits").window(three=so.sum("cost"), order_by="day", rows=(-2, 0)).agg(m=so.mean("three"))',
         "COUNT, SUM and FIRST_VALUE; a number of rows PRECEDING or FOLLOWING, or UNBOUNDED"),
        ("rows of several tables",
         "SELECT COUNT(*) AS n FROM (SELECT patient_id, day FROM visits UNION ALL SELECT patient_id, day FROM calls) AS "
         "visits",
         'question("visits").select("patient_id", "day").union_all(question("calls").select("patient_id", '
         '"day")).agg(n=so.count())', "tables with the same persons"),
        ("different rows of a person", "SELECT COUNT(*) AS n FROM (SELECT DISTINCT patient_id, ward FROM visits) AS visits",
         'question("visits").select("patient_id", "ward").distinct().agg(n=so.count())', "the person must be selected"),
    ),
    *_rows("Aggregates",
        ("of some rows", "SUM(cost) FILTER (WHERE age >= 65)", 'so.sum("cost").where("age >= 65")'),
        ("count some rows", "COUNT(*) FILTER (WHERE age >= 65)", 'so.count().where(so.col("age") >= 65)',
         "COUNT_IF(age >= 65), too"),
        ("arithmetic", "SUM(cost) / SUM(quantity)", 'so.sum("cost") / so.sum("quantity")',
         "+ - * / of aggregates and numbers, with one interval"),
        ("percentage", "100 * COUNT(*) FILTER (WHERE age >= 65) / COUNT(*)",
         '100 * so.count().where("age >= 65") / so.count()'),
    ),
    *_rows("Conditions",
        ("comparison", "age >= 65", 'so.col("age") >= 65', "= <> != < <= > >="),
        ("equal", "ward = 'A'", 'so.col("ward") == "A"'),
        ("different", "ward <> 'A'", 'so.col("ward") != "A"'),
        ("less", "age < 18", 'so.col("age") < 18'),
        ("at most", "age <= 18", 'so.col("age") <= 18'),
        ("more", "age > 18", 'so.col("age") > 18'),
        ("and", "age >= 65 AND smoker", '(so.col("age") >= 65) & so.col("smoker")', "& needs brackets around comparisons"),
        ("or", "age < 18 OR age >= 65", '(so.col("age") < 18) | (so.col("age") >= 65)'),
        ("not", "NOT smoker", '~so.col("smoker")'),
        ("one of", "ward IN ('A', 'B')", 'so.col("ward").isin(["A", "B"])', "constants only"),
        ("none of", "ward NOT IN ('A', 'B')", '~so.col("ward").isin(["A", "B"])'),
        ("range", "age BETWEEN 18 AND 64", 'so.col("age").between(18, 64)', "both ends included"),
        ("missing", "cost IS NULL", 'so.col("cost").is_null()'),
        ("present", "cost IS NOT NULL", '~so.col("cost").is_null()'),
        ("pattern", "city LIKE 'New%'", 'so.col("city").like("New%")', "% any letters, _ one; no escape"),
        ("pattern in any case", "city ILIKE 'new%'", 'so.col("city").ilike("new%")',
         "beyond ASCII, the engine decides which letters are the same"),
        ("true, false", "smoker = TRUE", 'so.col("smoker") == True'),
        ("date", "day >= DATE '2024-01-31'", 'so.col("day") >= datetime.date(2024, 1, 31)',
         "text such as '2024-01-31' is read as a date, too"),
        ("time", "at < TIMESTAMP '2024-01-31 12:30:00'", 'so.col("at") < datetime.datetime(2024, 1, 31, 12, 30)',
         "without time zone"),
    ),
    *_rows("Values",
        ("sum, difference", "price + tax - 1.5", 'so.col("price") + so.col("tax") - 1.5', "0.1 is exactly 1/10"),
        ("product, quotient", "price * quantity / 100", 'so.col("price") * so.col("quantity") / 100',
         "division by zero is NULL"),
        ("remainder", "age % 10", 'so.col("age") % 10', "MOD(age, 10), too; never negative"),
        ("minus", "-cost", '-so.col("cost")'),
        ("without sign", "ABS(cost)", 'so.col("cost").abs()'),
        ("round", "ROUND(cost, 1)", 'so.col("cost").round(1)', "ROUND(cost) to whole numbers; digits may be negative"),
        ("down", "FLOOR(cost)", 'so.col("cost").floor()'),
        ("up", "CEIL(cost)", 'so.col("cost").ceil()', "CEILING, too"),
        ("bucket", "BUCKET(age, 10)", 'so.col("age").bucket(10)', "FLOOR(age / 10) * 10"),
        ("logarithm", "LN(cost)", 'so.col("cost").ln()', "natural; missing where cost is not above 0"),
        ("to base 10", "LOG10(cost)", 'so.col("cost").log10()', "LOG is refused: dialects differ on its base"),
        ("e to the power", "EXP(cost / 1000)", '(so.col("cost") / 1000).exp()',
         "missing where it is too large for a double"),
        ("square root", "SQRT(cost)", 'so.col("cost").sqrt()', "missing below 0"),
        ("power", "POWER(cost, 2)", 'so.col("cost") ** 2',
         "POW and cost ** 2, too; missing where it is no finite real number"),
        ("bounded", "CLAMP(cost, 0, 1000)", 'so.col("cost").clamp(0, 1000)',
         "of numbers and dates; both ends are constants, and bounds of the result"),
        ("smallest", "LEAST(price, cost, 100)", 'so.least("price", so.col("cost"), 100)', "missing ones are skipped"),
        ("largest", "GREATEST(price, 0)", 'so.greatest("price", 0)', "missing ones are skipped"),
        ("instead of missing", "COALESCE(cost, 0)", 'so.coalesce("cost", 0)', "IFNULL, too"),
        ("missing instead", "NULLIF(cost, 0)", 'so.col("cost").null_if(0)'),
        ("case", "CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'adult' ELSE 'old' END",
         'so.when("age < 18", "young").when(so.col("age") < 65, "adult").otherwise("old")'),
        ("case of values", "CASE ward WHEN 'A' THEN 1 END", 'so.when(so.col("ward") == "A", 1).end()'),
        ("if", "IF(smoker, 1, 0)", 'so.when(so.col("smoker"), 1).otherwise(0)', "IIF, too"),
        ("lower case", "LOWER(city)", 'so.col("city").lower()'),
        ("upper case", "UPPER(city)", 'so.col("city").upper()'),
        ("length", "LENGTH(city)", 'so.col("city").length()', "in characters"),
        ("part of a text", "SUBSTR(city, 1, 3)", 'so.col("city").substr(1, 3)', "SUBSTRING, LEFT(city, 3), too"),
        ("joined texts", "city || ', ' || ward", 'so.col("city").append(", ", so.col("ward"))',
         "missing if one of them is; the lengths must be known: declare max_length, or cut with SUBSTR"),
        ("the same", "CONCAT(city, ', ', ward)", 'so.concat("city", ", ", so.col("ward"))', "missing ones are empty"),
        ("year", "YEAR(day)", 'so.year("day")', "QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, too"),
        ("part of a date", "EXTRACT(dow FROM day)", 'so.date_part("dow", "day")',
         "year quarter month week day dow isodow doy hour minute"),
        ("the same", "DATE_PART('isodow', day)", 'so.col("day").date_part("isodow")'),
        ("beginning", "DATE_TRUNC('month', day)", 'so.date_trunc("month", "day")',
         "year quarter month week day hour minute"),
        ("span of time", "TIME_BUCKET('15 minutes', at)", 'so.time_bucket("15 minutes", "at")',
         "INTERVAL 15 MINUTE, too; months count from 2000-01-01, other spans from Monday, 2000-01-03"),
        ("name of the day", "DAYNAME(day)", 'so.col("day").day_name()', "in English: Monday"),
        ("name of the month", "MONTHNAME(day)", 'so.col("day").month_name()', "in English: January"),
        ("days between", "DATE_DIFF('day', day, DATE '2024-01-31')",
         'so.date_diff("day", "day", so.lit(datetime.date(2024, 1, 31)))',
         "how many days (year quarter month hour minute) begin after the first, up to the second"),
        ("day of a time", "CAST(at AS DATE)", 'so.col("at").cast("date")', "at::DATE, too"),
        ("whole number", "CAST(cost AS INTEGER)", 'so.col("cost").cast("integer")',
         "or BIGINT: the nearest, halves away from 0; of a condition 1 or 0; bounds must be known"),
        ("number", "CAST(smoker AS DOUBLE)", 'so.col("smoker").cast("double")', "TIMESTAMP of a date, too"),
    ),
)  # fmt: skip


def supported() -> tuple[Supported, ...]:
    """Everything that can be asked, the registered aggregates among it."""
    examples = (each for kind in kinds().values() for each in kind.examples)
    aggregates = tuple(
        Supported("Aggregates", each.what, each.sql, each.python, each.note) for each in examples
    )
    at = next(i for i, row in enumerate(_ROWS) if row.section == "Aggregates")
    return (*_ROWS[:at], *aggregates, *_ROWS[at:])


REFUSED: tuple[Refused, ...] = (
    Refused("all columns", "SELECT * FROM visits", "Name aggregates"),
    Refused("rows", "SELECT age FROM visits", "Add it to GROUP BY"),
    Refused("keys alone", "SELECT ward FROM visits GROUP BY ward", "Add COUNT(*)"),
    Refused("distinct rows", "SELECT DISTINCT ward FROM visits", "GROUP BY ward"),
    Refused("smallest, largest", "SELECT MAX(age) FROM visits", "QUANTILE(age, 0.99)"),
    Refused("distinct values", "SELECT SUM(DISTINCT cost) FROM visits", "Leave DISTINCT out"),
    Refused("a number of all rows", "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", "first"),
    Refused("heavy hitters", "SELECT APPROX_TOP_K(city, 3) FROM visits", "ORDER BY n DESC LIMIT 1"),
    Refused("lists", "SELECT STRING_AGG(city, ',') FROM visits", "COUNT or QUANTILE"),
    Refused("functions of aggregates", "SELECT ROUND(AVG(cost)) FROM visits", "compute with the answer"),
    Refused("aggregates of aggregates", "SELECT SUM(AVG(cost)) FROM visits", "compute with the answers"),
    Refused("aggregates in WHERE", "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 5", "compute with the answers"),
    Refused("windows", "SELECT SUM(cost) OVER (PARTITION BY ward) FROM visits", "GROUP BY"),
    Refused("subqueries without a name", "SELECT COUNT(*) FROM (SELECT age FROM visits)", "AS v"),
    Refused("an order in a subquery", "SELECT COUNT(*) FROM (SELECT age FROM visits LIMIT 5) AS v", "ROW_NUMBER()"),
    Refused("recursion", "WITH RECURSIVE v AS (SELECT age FROM visits) SELECT COUNT(*) FROM v", "Write the steps out"),
    Refused("unions of answers", "SELECT COUNT(*) FROM a UNION ALL SELECT COUNT(*) FROM b", "Ask two questions"),
    Refused("unions without ALL", "SELECT COUNT(*) FROM (SELECT x FROM a UNION SELECT x FROM b) AS c", "UNION ALL"),
    Refused("two statements", "SELECT COUNT(*) FROM visits; DROP TABLE visits", "separately"),
    Refused("changes", "DROP TABLE visits", "SELECT COUNT(*)"),
    Refused("files", "SELECT COUNT(*) FROM 'visits.parquet'", "declared table"),
    Refused("file functions", "SELECT COUNT(*) FROM read_csv('visits.csv')", "declared table"),
    Refused("other joins", "SELECT COUNT(*) FROM visits CROSS JOIN wards", "JOIN wards ON"),
    Refused("conditions of joins", "SELECT COUNT(*) FROM visits JOIN wards ON visits.age > wards.age", "JOIN wards ON"),
    Refused("other casts", "SELECT COUNT(*) FROM visits WHERE CAST(age AS TEXT) = '5'", "declared columns have their types"),
    Refused("intervals", "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-01-31' - INTERVAL 7 DAY", "a date itself"),
    Refused("the clock", "SELECT COUNT(*) FROM visits WHERE day = CURRENT_DATE", "DATE '2024-01-31'"),
    Refused("parameters", "SELECT COUNT(*) FROM visits WHERE age > ?", "the value into the question"),
    Refused("other patterns", "SELECT COUNT(*) FROM visits WHERE city GLOB 'a*'", "name ILIKE"),
    Refused("escapes", "SELECT COUNT(*) FROM visits WHERE city LIKE 'a!%' ESCAPE '!'", "name ILIKE"),
    Refused("LOG", "SELECT COUNT(*) FROM visits WHERE LOG(cost) > 5", "LN(x) or LOG10(x)"),
    Refused("other functions", "SELECT COUNT(*) FROM visits WHERE SIN(cost) > 5", "sordino docs sql"),
    Refused("chance", "SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.5", "all rows"),
    Refused("samples", "SELECT COUNT(*) FROM visits USING SAMPLE 10%", "all rows"),
    Refused("the place of NULL", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n NULLS LAST", "out"),
    Refused("other columns in HAVING", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING cost > 5", "to SELECT"),
)  # fmt: skip


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def render() -> str:
    """Both tables in Markdown."""
    lines: list[str] = []
    known = supported()
    for section in dict.fromkeys(row.section for row in known):
        lines += ["", f"### {section}", "", "| what | SQL | Python | note |", "|---|---|---|---|"]
        rows = (row for row in known if row.section == section)
        lines += [
            f"| {row.what} | {_code(row.sql)} | {_code(row.python)} | {_cell(row.note)} |"
            for row in rows
        ]
    lines += ["", "### Refused", "", "| what | SQL | the error says |", "|---|---|---|"]
    lines += [f"| {row.what} | {_code(row.sql)} | ... {_cell(row.hint)} ... |" for row in REFUSED]
    return "\n".join(lines).strip() + "\n"
