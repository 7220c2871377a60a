"""Routed mode (K10): only the active node's tools, focus messages on each switch, four kinds of error.

After a customer message the entry is active again where the script says so (`reset_to_initial_node`);
a delegate that has answered gives control back to the node that called it (`delegates_return`).
"""

from typing import Any, Self

from nemo_tau2.agentscript.graph import Node, Tool, ToolKind
from nemo_tau2.episodes import Item, Observation, Opening, message_item
from nemo_tau2.simulation.episode import SpecEpisode, as_function
from nemo_tau2.simulation.score import ROUTING, Switch
from nemo_tau2.simulation.session import CallRefusedError, Done, Refusal


class RoutedEpisode(SpecEpisode):
    """A router and its subagents."""

    _callers: list[str] | tuple[()] = ()
    _arrived = 0
    _focused: str | None = None
    _focus_text = ""

    def tools(self) -> list[Item]:
        """The visible tools of the active node; guards are evaluated anew each time."""
        return [as_function(tool) for tool in self.session.visible()]

    async def seed(self) -> Opening:
        seen = await super().seed()
        self._note_dead_end(seen)
        return seen

    async def step(self, output: list[Item]) -> Observation:
        seen = await super().step(output)
        self._note_dead_end(seen)
        return seen

    def _note_dead_end(self, seen: Opening | Observation) -> None:
        if not seen.tools and not seen.done:
            self.dead_ends += 1

    moves_on_talk = True

    def callable_tools(self) -> list[tuple[str, Tool]]:
        return [(tool.name, tool) for tool in self.session.visible()]

    @property
    def place(self) -> tuple[Any, ...]:
        return (self.session.node, *self._callers)

    def copy(self) -> Self:
        twin = super().copy()
        twin._callers = [*self._callers]
        return twin

    def resolve(self, name: str) -> tuple[Node, Tool]:
        """The active node's tool of that name, or which of the four errors it is."""
        if self.session.stop_reason:
            raise CallRefusedError(Refusal.UNAVAILABLE, "the session has left this agent")
        node = self.graph.nodes[self.session.node]
        tool = node.tool(name)
        if tool is None:
            others = self.graph.nodes_with_tool(name)
            if not others:
                raise CallRefusedError(Refusal.UNKNOWN, f"unknown tool {name[:80]!r}")
            hint = f"; it belongs to {', '.join(others)}" if self._names_right else ""
            raise CallRefusedError(
                Refusal.WRONG_SUBAGENT, f"{name!r} is not a tool of {node.name}{hint}"
            )
        self._check_guard(tool)
        return node, tool

    @property
    def _names_right(self) -> bool:
        return self.options.name_the_right_subagent

    async def _begin(self) -> list[Item]:
        self._callers = []
        return await super()._begin()

    async def _execute(self, done: Done, tool: Tool, node: Node, given: dict[str, Any]) -> None:
        done.routes = tuple(t.target for t in self.session.visible() if t.kind in ROUTING)
        await super()._execute(done, tool, node, given)
        if done.goto is None:
            return
        if tool.kind is ToolKind.DELEGATE and self.budget.delegates_return and not tool.connected:
            self._callers.append(node.name)
        elif tool.kind is ToolKind.TRANSITION:
            self._callers.clear()
        if not tool.connected:
            await self._switch(done)
        else:
            done.goto = None

    async def _switch(self, done: Done) -> None:
        source = self.session.node
        self._focus_text = await self.session.enter(done.goto)
        if self.session.node != source:
            self._switched(source, done)
            self.session.version += 1

    def _switched(self, source: str, done: Done | None = None) -> None:
        calls = self.session.calls
        visit = [*calls[self._arrived :], *([done] if done else [])]
        worked = any(c.refusal is None and c.action is not None for c in visit)
        self.switches.append(Switch(source, self.session.node, worked))
        self._arrived = len(calls) + bool(done)
        self._focused = None

    async def _after_calls(self) -> list[Item]:
        self._check_terminal()
        return [] if self.stop_reason else await self._focus()

    async def _answered(self, text: str) -> list[Item]:
        target = await self.session.leave()
        if target is None and self._callers:
            target = self._callers.pop()
        elif target is None and self.budget.reset_to_initial_node:
            self._callers.clear()
            target = self.graph.entry
        self._next = target or self.session.node
        return await self.hear_customer(text)

    async def _after_customer(self) -> list[Item]:
        before = self.session.node
        self._focus_text = await self.session.enter(getattr(self, "_next", before))
        if self.session.node != before:
            self._focused, self._arrived = None, len(self.session.calls)
        self._check_terminal()
        return [] if self.stop_reason else self._focus_items(self._focus_text)

    async def _focus(self) -> list[Item]:
        before = self.session.node
        text = await self.session.focus()
        if self.session.node != before:
            self._switched(before)
        self._check_terminal()
        return [] if self.stop_reason else self._focus_items(text)

    def _focus_items(self, text: str) -> list[Item]:
        changed = self.options.focus == "change" and text != self._last
        if self._focused == self.session.node and not changed:
            return []
        self._focused, self._last = self.session.node, text
        return [message_item(self.options.focus_role, text)] if text else []

    _last = ""
