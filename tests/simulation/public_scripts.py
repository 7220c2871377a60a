"""The 25 public scripts and our six: where they are, their rows per mode, and what is known of them."""

import asyncio
from functools import cache
from pathlib import Path

from nemo_tau2.simulation.factory import new_episode
from nemo_tau2.simulation.pivot_rows import pivot_rows, pivot_scenarios
from nemo_tau2.simulation.policies import play
from nemo_tau2.simulation.rows import Source, rows_of, solvable
from nemo_tau2.simulation.scenario import Mode, Persona
from nemo_tau2.simulation.scripts import built_in, load_script

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "agentscript" / "scripts"
NUMBERS = [f"{number:02d}" for number in range(1, 26)]
SCRIPTS = [*NUMBERS, *built_in()]
MODES = ["flat", "routed", "sandbox"]
EPISODES = 20

NOTHING = {"10", "14", "15", "16", "17", "18", "20", "21", "22"}
"""No tool runs an action that a policy can ground, in any mode."""
READS_ONLY = {"04", "06", "07", "09", "25"}
"""What can be grounded has no effect, so a sandbox has nothing to score."""
PIVOT = {"08", "19", "23", "24", *built_in()}
"""A tool can be withheld: it has arguments, another one an effect, and another one only reads."""

UNSET = "is set by nothing"
REASONS = {
    ("01", "flat"): {"escalate_case": "no record is chosen yet"},
    ("01", "routed"): {"escalate_case": "`not @variables.kb_article_found` never holds"},
    ("04", "flat"): {"analyze_billing_issue": f"@variables.customer_id, which {UNSET}"},
    ("05", "flat"): {"send_itinerary": f"@variables.traveler_email, which {UNSET}"},
    ("07", "routed"): {"calculate_debt_ratio": f"annual_income {UNSET}"},
    ("08", "routed"): dict.fromkeys(["reassign_ticket", "delete_ticket"], f"user_role {UNSET}"),
    ("11", "routed"): dict.fromkeys(
        [f"fetch_{what}_details" for what in
         ("checklist_review", "finding_documentation", "report_delivery")],
        f"inspection_record_id {UNSET}",
    ),
    ("12", "routed"): dict.fromkeys(
        [f"fetch_{what}_details" for what in ("booking", "confirmation", "reminder")],
        f"appointment_record_id {UNSET}",
    ),
    ("13", "flat"): {
        "Verify_Customer_Identity": "customer_email, which is only set by `capture_customer_info`",
        "Get_Customer_Case_History": "customer_id, which is only set by `verify_customer`",
        "Create_Support_Case": "customer_id, which is only set by `verify_customer`",
        "Initiate_Escalation": "case_number, which is only set by `create_case`",
        "Notify_Customer": "customer_id, which is only set by `verify_customer`",
        "Close_Case": "case_number, which is only set by `create_case`",
    },
    ("16", "flat"): {"retrieve_order_details": f"@variables.email, which {UNSET}"},
    ("18", "flat"): {"Lookup_Order": f"@variables.Order_Id, which {UNSET}"},
    ("19", "routed"): {
        "UpdateSalesRecord": f"QualificationEnabled {UNSET}",
        "SalesRecordQualificationEvaluation": f"QualificationEnabled {UNSET}",
        "CreateSalesRecord": '`@variables.ActiveFlow == "record_creation"` never holds',
    },
    ("23", "routed"): dict.fromkeys(
        ["Query_Product_Details", "Get_Product_Image"],
        "no edge leads to `Product_Info_and_Features`",
    ),
    ("25", "flat"): {
        **dict.fromkeys(
            ["get_claim_status", "generate_quote", "compare_quotes", "search_knowledge",
             "create_support_case"],
            "@inputs has no value here",
        ),
        **dict.fromkeys(
            ["get_billing_summary", "make_payment", "update_profile", "setup_autopay"],
            f"@variables.customer_id, which {UNSET}",
        ),
        "lookup_policy": "only set by `set_policy_info`, `purchase_policy`, `verify_identity`",
        **dict.fromkeys(
            ["update_coverage", "send_policy_documents", "file_new_claim"],
            "@variables.policy_record_id, which is only set by `purchase_policy`",
        ),
        **dict.fromkeys(
            ["upload_claim_document", "schedule_inspection", "get_adjuster_assessment"],
            "@variables.case_id, which is only set by `file_claim`, `open_case`",
        ),
        **dict.fromkeys(
            ["apply_discount", "convert_quote_to_policy"],
            "@variables.quote_data, which is only set by `get_quote`",
        ),
    },
}  # fmt: skip
"""Actions that no policy can ground, and a part of the reason given. Sandbox is as flat."""
for number in ("04", "05", "13", "16", "18"):
    REASONS[number, "routed"] = REASONS[number, "flat"]
REASONS["25", "routed"] = REASONS["25", "flat"] | {
    **dict.fromkeys(["update_coverage", "file_new_claim"], "is_policy_active is only set by"),
    "send_policy_documents": "policy_record_id is only set by `purchase_policy`",
    **dict.fromkeys(["upload_claim_document", "schedule_inspection"], "case_id is only set by"),
    "compare_quotes": "quote_requested is only set by `get_quote`",
    **dict.fromkeys(["apply_discount", "convert_quote_to_policy"], "quote_data is only set by"),
    "make_payment": "total_premiums_paid is only set by",
    "get_adjuster_assessment": f"claim_amount {UNSET}",
}


def path_of(script: str) -> str:
    """A public script's file by its number; a built-in one by its name."""
    return str(next(FOLDER.glob(f"{script}_*.agent"))) if script in NUMBERS else script


def graph_of(script: str):
    return load_script(path_of(script))


def reasons_of(script: str, mode: str) -> dict[str, str]:
    return REASONS.get((script, "routed" if mode == "routed" else "flat"), {})


@cache
def rows(script: str, mode: str) -> tuple[dict, ...]:
    """Rows as `spec rows` makes them: 3 scenarios, at the opening and after 1 to 3 turns."""
    return asyncio.run(_rows(script, mode))


async def _rows(script: str, mode: str) -> tuple[dict, ...]:
    source = Source(path_of(script), graph_of(script), Mode(mode), 3)
    persona, found = Persona(), []
    if mode == "pivot":
        for scenario, choice in pivot_scenarios(source, 8):
            found += await pivot_rows(source, scenario, choice, [persona], [0, 1, 2])
        return tuple(found)
    for scenario in await solvable(source, 6 if mode == "sandbox" else 3):
        found += await rows_of(source, scenario, [persona], [0] if mode == "sandbox" else range(4))
    return tuple(found)


def asks_for_data(row: dict) -> bool:
    return any(q["action"] for q in row["verifier_metadata"]["questions"])


def verdict(row: dict, policy, **settings) -> dict:
    return asyncio.run(play(new_episode(row, **settings), policy))
