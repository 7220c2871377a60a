"""Does an action read or write? Agent Script does not say; this module collects the evidence.

In order: the sidecar, `require_user_confirmation: True`, the kind of target, the first verb of the
name. Without any of these the effect is unknown, and callers treat unknown as a write.
"""

import re

from nemo_tau2.agentscript.graph import Effect, EffectEvidence
from nemo_tau2.agentscript.names import words

READ_VERBS = words(
    """answer analyze assess calculate check classify compare compute count describe detect
    determine diagnose estimate evaluate explain extract fetch filter find forecast generate get
    identify inspect list load locate look lookup match poll predict preview query quote read
    recommend retrieve review scan score search select show suggest summarize track translate
    validate verify view"""
)
WRITE_VERBS = words(
    """activate add apply approve archive assign attach authorize block book cancel change charge
    claim close complete confirm convert create deactivate delete dispatch disable disburse edit
    enable enroll escalate execute extend file flag freeze initiate insert install issue lock log
    mark merge modify move notify open order pay place post process publish purchase reactivate
    record redeem refund register reject release remove renew reopen replace report request
    reschedule reserve reset resolve restore return revoke route save schedule send set ship sign
    start stop store submit subscribe suspend sync transfer trigger unblock unlock update upgrade
    upload void waive withdraw write"""
)
READING_SCHEMES = frozenset({"retriever", "prompt", "generatePromptResponse"})
READING_TARGETS = frozenset({"standardInvocableAction://streamKnowledgeSearch"})


def classify(name: str, target: str | None, requires_confirmation: bool) -> EffectEvidence:
    """Returns the effect of an action and the reason for it."""
    if requires_confirmation:
        return EffectEvidence(Effect.WRITE, "require_user_confirmation is True")
    scheme = target.partition("://")[0] if target and "://" in target else ""
    if scheme in READING_SCHEMES or target in READING_TARGETS:
        return EffectEvidence(Effect.READ, f"the target {target} only answers")
    verb = first_verb(name)
    if verb in READ_VERBS:
        return EffectEvidence(Effect.READ, f"the name begins with `{verb}`")
    if verb in WRITE_VERBS:
        return EffectEvidence(Effect.WRITE, f"the name begins with `{verb}`")
    return EffectEvidence(Effect.UNKNOWN, f"`{verb}` is in no verb table")


def first_verb(name: str) -> str:
    """The first word of `snake_case` or `CamelCase`, in lower case."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return next((word for word in spaced.split("_") if word), "").lower()
