"""Makes the other fixtures of bills from the two that stand for a day: the same charges in other formats.

Needs pyarrow for the columnar ones. `python3 generate.py` in this folder.
"""

import csv
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq


def rows_of(name):
    with gzip.open(name, "rt", newline="") as file:
        return list(csv.DictReader(file))


def legacy_name(name):
    """`line_item_usage_type` as the legacy report calls it: `lineItem/UsageType`."""
    for section in ["identity", "bill", "line_item", "pricing", "product", "reservation", "savings_plan"]:
        if name.startswith(section + "_"):
            first, *others = section.split("_")
            rest = "".join(word.capitalize() for word in name.removeprefix(section + "_").split("_"))
            if section in ("pricing", "product"):
                rest = rest[0].lower() + rest[1:]
            return first + "".join(word.capitalize() for word in others) + "/" + rest
    raise ValueError(name)


LEGACY_TAGS = {
    "aws_eks_cluster_name": "resourceTags/aws:eks:cluster-name",
    "user_elbv2_k8s_aws_cluster": "resourceTags/user:elbv2.k8s.aws/cluster",
    "user_karpenter_sh_nodepool": "resourceTags/user:karpenter.sh/nodepool",
    "user_kubernetes_io_cluster_shop_prod": "resourceTags/user:kubernetes.io/cluster/shop-prod",
    "user_team": "resourceTags/user:team",
}


def write_csv(name, rows):
    with open(name, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def one_hour(rows, column, hour="2026-10-13T15:00:00Z"):
    return [row for row in rows if row[column] == hour]


def legacy(rows):
    made = []
    for row in one_hour(rows, "line_item_usage_start_date"):
        tags = json.loads(row["resource_tags"])
        line = {legacy_name(key): value for key, value in row.items() if key != "resource_tags"}
        line.update({title: tags.get(key, "") for key, title in LEGACY_TAGS.items()})
        made.append(line)
    return made


FOCUS_10_LACKS = {
    "BillingAccountType", "CapacityReservationId", "CapacityReservationStatus", "CommitmentDiscountQuantity",
    "CommitmentDiscountUnit", "InvoiceId", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice", "ServiceSubcategory", "SkuMeter", "SkuPriceDetails",
    "SubAccountType",
}  # fmt: skip


def focus_10(rows):
    made = []
    for row in one_hour(rows, "ChargePeriodStart"):
        line = {key: value for key, value in row.items() if key not in FOCUS_10_LACKS}
        line.update({"x_CostCategories": "{}", "x_UsageType": row["SkuMeter"]})
        made.append(line)
    return made


def columnar(rows, instants, amounts, maps, name):
    columns = {}
    for key in rows[0]:
        cells = [row[key] for row in rows]
        if all(cell == "" for cell in cells):
            continue
        if key in instants:
            cells = [None if not cell else int(pa.scalar(cell).cast(pa.timestamp("ms", "UTC")).value) for cell in cells]
            columns[key] = pa.array(cells, pa.timestamp("ms"))
        elif key in amounts:
            columns[key] = pa.array([float(cell) if cell else None for cell in cells], pa.float64())
        elif key in maps:
            cells = [list(json.loads(cell or "{}").items()) for cell in cells]
            columns[key] = pa.array(cells, pa.map_(pa.string(), pa.string()))
        else:
            columns[key] = pa.array([cell or None for cell in cells], pa.string())
    pq.write_table(pa.table(columns), name, compression="snappy", row_group_size=200)


def main():
    cur, focus = rows_of("cur2-2026-10-13.csv.gz"), rows_of("focus12-2026-10-13.csv.gz")
    write_csv("legacy-cur-one-hour.csv", legacy(cur))
    write_csv("focus10-one-hour.csv", focus_10(focus))
    columnar(
        cur,
        {"line_item_usage_start_date", "line_item_usage_end_date"},
        {key for key in cur[0] if key.endswith(("_amount", "_cost", "_rate", "_commitment", "_to_date"))},
        {"resource_tags"},
        "cur2-2026-10-13.snappy.parquet",
    )
    columnar(
        one_hour(focus, "ChargePeriodStart"),
        {"ChargePeriodStart", "ChargePeriodEnd"},
        {key for key in focus[0] if key.endswith(("Cost", "Quantity", "UnitPrice"))},
        {"Tags", "SkuPriceDetails", "x_Discounts"},
        "focus12-one-hour.snappy.parquet",
    )


if __name__ == "__main__":
    main()
