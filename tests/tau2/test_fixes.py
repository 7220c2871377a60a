"""Each repair of the engine: upstream's fault shown with the switch off, gone with it on."""

import pytest

from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.fixes import Fixes, check_expression, evaluate

OFF = Fixes(vpn_default=False, bill_id=False, calculate=False, gold_sync=False)


def calculate(fixes, expression):
    return (
        load_domain("airline", fixes)
        .new_world()
        .execute("assistant", "calculate", {"expression": expression})
    )


class TestCalculate:
    @pytest.mark.parametrize(
        "expression", ["2 + 3 * (4 - 1)", " 7/2", "1//0", "5 % 2", "((1)", "007", "3.10*2"]
    )
    def test_within_the_grammar_it_is_upstreams(self, expression):
        assert calculate(Fixes(), expression).content == calculate(OFF, expression).content

    @pytest.mark.parametrize("expression", ["9**9", "2(3)", "1," * 2, "1+" * 150 + "1", "()"])
    def test_outside_it_is_refused(self, expression):
        assert calculate(Fixes(), expression).error

    def test_a_power_tower_is_refused_before_it_runs(self):
        with pytest.raises(ValueError, match="may contain only numbers"):
            check_expression("9**9**8")

    def test_values(self):
        assert evaluate("2 + 3 * (4 - 1)") == 11.0
        assert evaluate("-7 // 2") == -4.0

    def test_the_tool_keeps_its_schema(self):
        names = [
            {s["function"]["name"]: s for s in load_domain("airline", f).sides["assistant"].schemas}
            for f in (Fixes(), OFF)
        ]
        assert names[0] == names[1]


class TestVpn:
    def connect_after_a_break_elsewhere(self, fixes):
        domain = load_domain("telecom", fixes)
        broken, other = domain.new_world(), domain.new_world()
        broken.environment.user_tools.connect_vpn()
        broken.environment.user_tools.break_vpn()
        other.environment.user_tools.connect_vpn()
        return other.environment.user_tools.device.vpn_details.server_performance.value

    def test_breaking_one_phone_leaves_the_others_alone(self):
        assert self.connect_after_a_break_elsewhere(Fixes()) == "excellent"

    def test_upstream_breaks_them_all(self):
        from tau2.domains.telecom.user_tools import TelecomUserTools

        saved = TelecomUserTools.default_vpn_details
        TelecomUserTools.default_vpn_details = saved.model_copy(deep=True)
        try:
            assert self.connect_after_a_break_elsewhere(OFF) == "poor"
        finally:
            TelecomUserTools.default_vpn_details = saved


def test_a_new_bill_has_the_same_id_every_time():
    def bills(fixes):
        world = load_domain("telecom", fixes).new_world()
        tools = world.environment.tools
        customer = next(
            c
            for c in tools.db.customers
            if not any(tools._get_bill_by_id(b).status.value == "Draft" for b in c.bill_ids)
        )
        args = {
            "customer_id": customer.customer_id,
            "line_id": customer.line_ids[0],
            "gb_amount": 1,
        }
        assert not world.execute("assistant", "refuel_data", args).error
        return list(customer.bill_ids)

    assert bills(Fixes()) == bills(Fixes())
    assert bills(OFF) != bills(OFF)


def test_stock_toolkits_stay_as_they_are():
    from tau2.domains.airline.tools import AirlineTools

    load_domain("airline")
    assert "bounded" not in AirlineTools.calculate.__qualname__


def test_retails_last_variant_bug_is_kept_for_score_parity():
    """sierra-research/tau2-bench#317: reversed pairs change the end state; 5 tasks score 0."""
    from nemo_tau2.tau2.tasks import load_tasks

    shared, changed = load_domain("retail"), []
    for task in load_tasks("retail").split("base"):
        for action in task.evaluation_criteria.actions or []:
            if (
                action.name == "modify_pending_order_items"
                and len(action.arguments["item_ids"]) > 1
            ):
                reverse = action.arguments | {
                    k: action.arguments[k][::-1] for k in ("item_ids", "new_item_ids")
                }
                states = []
                for arguments in (action.arguments, reverse):
                    world = shared.new_world()
                    if not world.execute("assistant", action.name, arguments).error:
                        states.append(world.delta())
                if len(states) == 2 and states[0] != states[1]:
                    changed.append(task.id)
    assert {"20", "21", "36", "37", "100"} & set(changed)
