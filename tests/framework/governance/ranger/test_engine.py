"""Decisions of the engine, one rule a test."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ranger_world import (
    allow,
    allowed,
    answer,
    asked,
    definition,
    deny,
    engine,
    item,
    mask,
    members,
    policy,
    row_filter,
    service,
)

from lockgate.errors import InputError, PolicyError
from lockgate.framework.governance.ranger.conditions.ranger_request import ADMIN, ANY
from lockgate.framework.governance.ranger.engine.engine import Engine, Settings
from lockgate.framework.governance.ranger.policies.definition import PolicyType
from lockgate.framework.governance.ranger.policies.deltas import updated

ANN = {"users": ["ann"]}


def test_what_no_policy_allows_is_denied() -> None:
    found = answer(engine(allow("lake.db.t.*", users=["bob"])), "lake.db.t.c")
    assert (found.allowed, found.policy) == (False, -1)


@pytest.mark.parametrize(
    "who",
    [
        {"users": ["ann"]},
        {"groups": ["staff"]},
        {"groups": ["public"]},
        {"users": ["{USER}"]},
        {"roles": ["reader"]},
    ],
)
def test_users_groups_and_roles_are_found(who: dict[str, list[str]]) -> None:
    of_roles = [
        {"name": "reader", "roles": members(["senior"])},
        {"name": "senior", "groups": members(["staff"])},
    ]
    found = engine(allow("lake.db.t.*", **who), roles=of_roles)
    assert allowed(found, "lake.db.t.c", groups=frozenset({"staff"}))


def test_the_owner_is_allowed_what_owners_are() -> None:
    found = engine(allow("lake.db.t.*", users=["{OWNER}"]))
    assert allowed(found, "lake.db.t.c", owner="ann")
    assert not allowed(found, "lake.db.t.c", owner="bob")


def test_a_denial_beats_what_is_allowed() -> None:
    found = engine(allow("lake.*.*.*", **ANN), deny("lake.db.t.salary", **ANN))
    assert allowed(found, "lake.db.t.name")
    assert not allowed(found, "lake.db.t.salary")


def test_exceptions_take_back() -> None:
    document = policy(
        "lake.db.t.*",
        policyItems=[item(groups=["staff"])],
        allowExceptions=[item(users=["bob"])],
        denyPolicyItems=[item(groups=["guests"])],
        denyExceptions=[item(users=["ann"])],
    )
    found, both = engine(document), frozenset({"staff", "guests"})
    assert allowed(found, "lake.db.t.c", groups=both)
    assert not allowed(found, "lake.db.t.c", user="bob", groups=frozenset({"staff"}))
    assert not allowed(found, "lake.db.t.c", user="cal", groups=both)


def test_a_higher_priority_overrides_a_denial() -> None:
    override = {**allow("lake.db.t.*", **ANN), "policyPriority": 1}
    assert allowed(engine(deny("lake.*.*.*", groups=["public"]), override), "lake.db.t.c")


def test_a_policy_that_denies_all_else() -> None:
    found = engine(
        allow("lake.db.t.*", groups=["public"]), {**allow("lake.db.t.*", **ANN), "isDenyAllElse": True}
    )
    assert allowed(found, "lake.db.t.c")
    assert not allowed(found, "lake.db.t.c", user="bob")


def test_a_policy_about_a_table_does_not_cover_its_columns() -> None:
    found = engine(allow("lake.db.t", **ANN))
    assert allowed(found, "lake.db.t")
    assert not allowed(found, "lake.db.t.c")


def test_any_access_counts_parts_of_the_resource() -> None:
    found = engine(allow("lake.db.t.c", **ANN))
    assert allowed(found, "lake.db", ANY)
    assert not allowed(found, "lake.db", "select")
    assert allowed(found, "lake.db", "select", scope="SELF_OR_DESCENDANTS")
    assert not allowed(found, "lake.other", ANY)


def test_accesses_imply_others_once() -> None:
    document = definition()
    document["accessTypes"][0]["impliedGrants"] = ["drop"]
    found = Engine({"serviceDef": document, "policies": [allow("lake.db", "all", **ANN)]})
    assert allowed(found, "lake.db", "select")
    document["accessTypes"][-1]["impliedGrants"] = ["show"]
    found = Engine({"serviceDef": document, "policies": [allow("lake.db", "all", **ANN)]})
    assert not allowed(found, "lake.db", "drop"), (
        "all implies show, and show drop, but that is a second round"
    )


def test_handing_on_needs_delegated_rights() -> None:
    found = engine(allow("lake.db.*.*", **ANN), allow("lake.db.t.*", delegateAdmin=True, **ANN))
    assert allowed(found, "lake.db.t.c", ADMIN)
    assert not allowed(found, "lake.db.u.c", ADMIN)


def test_super_users_may_do_everything() -> None:
    found = engine(deny("lake.*.*.*", groups=["public"]), settings=Settings(super_users=frozenset({"root"})))
    assert allowed(found, "lake.db.t.c", user="root")
    assert not allowed(found, "lake.db.t.c")


def test_excluded_values_and_globs() -> None:
    document = allow("lake.db.t.*", **ANN)
    document["resources"]["table"] = {"values": ["secret_*", "t?"], "isExcludes": True}
    found = engine(document)
    assert allowed(found, "lake.db.orders.c")
    assert not allowed(found, "lake.db.SECRET_plans.c")
    assert not allowed(found, "lake.db.t1.c")


def test_names_of_users_in_resources() -> None:
    found = engine(allow("lake.home_{USER}.*.*", groups=["public"]))
    assert allowed(found, "lake.home_ann.t.c")
    assert not allowed(found, "lake.home_bob.t.c")


def test_the_first_mask_of_the_highest_priority_wins() -> None:
    found = engine(mask("lake.db.t.ssn", "MASK_NULL", **ANN), mask("lake.db.t.*", "MASK_HASH", 1, **ANN))
    assert answer(found, "lake.db.t.ssn", kind=PolicyType.MASK).info == {"maskType": "MASK_HASH"}
    broad = engine(mask("lake.db.t.ssn", "MASK_NULL", **ANN), mask("lake.db.t.*", "MASK_HASH", **ANN))
    assert answer(broad, "lake.db.t.ssn", kind=PolicyType.MASK).info == {"maskType": "MASK_HASH"}, (
        "broad ones come first"
    )


def test_row_filters_with_attributes_of_the_user() -> None:
    text = "country in (${{GET_USER_ATTR_Q('country')}})"
    found = engine(
        row_filter("lake.db.t", text, groups=["public"]),
        users={"userAttrMapping": {"ann": {"country": "CH"}, "eve": {"country": "CH') or ('1'='1"}}},
    )
    assert answer(found, "lake.db.t", kind=PolicyType.FILTER).info == {"filterExpr": "country in ('CH')"}
    forged = answer(found, "lake.db.t", kind=PolicyType.FILTER, user="eve").info["filterExpr"]
    assert forged == "country in ('CH'') or (''1''=''1')", "a quote in an attribute ends no text"


@pytest.mark.parametrize(
    ("script", "holds"),
    [
        ("IS_IN_GROUP('staff') && !HAS_TAG('PII')", True),
        ("USER.level >= 3", True),
        ("USER.level > 3 || ctx.getUser() == 'bob'", False),
        ("var c = ctx.getRequestContextAttribute('c'); if (c == 'x') { ctx.result = true; }", True),
        ("UGNAMES.indexOf('nobody') >= 0 ? true : false", False),
        ("REQ.accessType === 'select' && RES.table.startsWith('t')", True),
        ("GET_UG_ATTR_CSV('site') == 'BS,ZH'", True),
        ("1 / 0 > nothing", None),
        ("function f() { return true }", None),
        ("new java.lang.Object()", None),
    ],
)
def test_conditions_are_scripts(script: str, holds: bool | None) -> None:
    document = allow("lake.db.t.*", conditions=[{"type": "script", "values": [script]}], **ANN)
    groups = {"staff": {"site": "ZH"}, "office": {"site": "BS"}}
    found = engine(document, users={"userAttrMapping": {"ann": {"level": "3"}}, "groupAttrMapping": groups})
    context = {"context": {"c": "x"}, "groups": frozenset(groups)}
    assert allowed(found, "lake.db.t.c", **context) == bool(holds), "what is not understood never holds"


@pytest.mark.parametrize("kind", ["deny", "mask", "filter", "exception", "policy"])
@pytest.mark.parametrize(
    "condition", [{"type": "moon", "values": ["full"]}, {"type": "script", "values": ["f(1)"]}]
)
def test_protection_that_is_not_understood_is_refused(kind: str, condition: dict[str, object]) -> None:
    own = {"conditions": [condition], **ANN}
    document = {
        "deny": deny("lake.db.t.*", **own),
        "mask": mask("lake.db.t.*", "MASK", **own),
        "filter": row_filter("lake.db.t", "x = 1", **own),
        "exception": policy("lake.db.t.*", policyItems=[item(**ANN)], allowExceptions=[item(**own)]),
        "policy": {**deny("lake.db.t.*", **ANN), "conditions": [condition]},
    }[kind]
    with pytest.raises(PolicyError, match=document["name"]):
        engine(document)
    engine(document, strict=False)


def test_conditions_that_only_allow_are_not_refused() -> None:
    document = allow("lake.db.t.*", conditions=[{"type": "moon", "values": ["full"]}], **ANN)
    assert not allowed(engine(document), "lake.db.t.c")


def test_validity_and_recurrence() -> None:
    document = allow("lake.db.t.*", **ANN)
    document["validitySchedules"] = [
        {
            "startTime": "2026/01/01 00:00:00",
            "endTime": "2026/12/31 23:59:59",
            "timeZone": "Europe/Zurich",
            "recurrences": [
                {
                    "schedule": {"minute": "0", "hour": "8", "dayOfWeek": "2-6", "month": "*", "year": "*"},
                    "interval": {"hours": 10},
                }
            ],
        }
    ]
    found = engine(document)
    # 2026-05-04 is a Monday.
    assert allowed(found, "lake.db.t.c", at=datetime(2026, 5, 4, 8, 0, tzinfo=UTC))
    assert allowed(found, "lake.db.t.c", at=datetime(2026, 5, 4, 18, 0, tzinfo=UTC))
    assert not allowed(found, "lake.db.t.c", at=datetime(2026, 5, 4, 18, 1, tzinfo=UTC))
    assert not allowed(found, "lake.db.t.c", at=datetime(2026, 5, 3, 12, 0, tzinfo=UTC)), "a Sunday"
    assert not allowed(found, "lake.db.t.c", at=datetime(2027, 5, 3, 12, 0, tzinfo=UTC)), "after the end"


def tagged(*policies: dict[str, object]) -> Engine:
    tag_definition = {
        "name": "tag",
        "resources": [{"name": "tag", "level": 1, "isValidLeaf": True}],
        "accessTypes": [{"name": "paimon:select"}, {"name": "hive:select"}],
        "dataMaskDef": {"resources": [{"name": "tag"}], "accessTypes": [{"name": "paimon:select"}]},
    }
    document = service(
        allow("lake.db.*.*", **ANN), tagPolicies={"serviceDef": tag_definition, "policies": [*policies]}
    )
    tags = {
        "tags": {"1": {"type": "PII", "attributes": {"level": "high"}}},
        "serviceResources": [{"id": 7, "resourceElements": allow("lake.db.people.ssn")["resources"]}],
        "resourceToTagIds": {"7": [1]},
    }
    return Engine(document, tags=tags)


def on_tag(key: str, access: str = "paimon:select", **more: object) -> dict[str, object]:
    document = policy("", **{key: [item(access, groups=["public"], **more)]})
    return {**document, "resources": {"tag": {"values": ["PII"]}}}


def test_tags_deny_before_resources_allow() -> None:
    found = tagged(on_tag("denyPolicyItems"))
    assert allowed(found, "lake.db.people.name")
    assert not allowed(found, "lake.db.people.ssn")


def test_a_tag_policy_of_another_service_says_nothing() -> None:
    assert allowed(tagged(on_tag("denyPolicyItems", "hive:select")), "lake.db.people.ssn")


def test_tag_attributes_in_conditions() -> None:
    high = {"type": "_expression", "values": ["TAG.level == 'high'"]}
    low = {"type": "_expression", "values": ["TAG.level == 'low'"]}
    assert not allowed(tagged(on_tag("denyPolicyItems", conditions=[high])), "lake.db.people.ssn")
    assert allowed(tagged(on_tag("denyPolicyItems", conditions=[low])), "lake.db.people.ssn")


def test_zones_keep_their_policies_apart() -> None:
    zones = {
        "finance": {
            "resources": [{"catalog": ["lake"], "database": ["money"]}],
            "policies": [allow("lake.money.*.*", users=["bob"])],
        }
    }
    found = Engine(service(allow("lake.*.*.*", **ANN), securityZones=zones))
    assert allowed(found, "lake.db.t.c")
    assert not allowed(found, "lake.money.t.c")
    assert answer(found, "lake.money.t.c", user="bob").zone == "finance"


def test_deltas_create_change_and_remove() -> None:
    first, second = allow("lake.db.t.*", **ANN), allow("lake.db.u.*", **ANN)
    third = allow("lake.db.v.*", **ANN)
    changed = {**second, "resources": allow("lake.db.w.*")["resources"]}
    document = updated(
        service(first, second),
        {
            "policyVersion": 2,
            "policyDeltas": [
                {"changeType": 2, "policy": {"id": first["id"]}},
                {"changeType": 1, "policy": changed},
                {"changeType": 0, "policy": third},
            ],
        },
    )
    found = Engine(document)
    assert [allowed(found, f"lake.db.{name}.c") for name in "tuvw"] == [False, False, True, True]
    assert found.version == 2
    with pytest.raises(PolicyError, match="before the policies"):
        updated({}, {"policyDeltas": []})


def test_inline_policies_narrow_what_a_session_may_do() -> None:
    only_t = {
        "mode": "RANGER_AND_INLINE",
        "grants": [{"resources": ["table:lake/db/t"], "permissions": ["select"]}],
    }
    whole = engine(allow("lake.db.*", **ANN))
    assert allowed(whole, "lake.db.t", inline=only_t)
    assert not allowed(whole, "lake.db.u", inline=only_t)
    assert allowed(whole, "lake.zz.t", inline={"mode": "INLINE", "grantor": "u:ann", "grants": []}) is False


def test_records_are_left_as_policies_and_filters_say() -> None:
    quiet = {**allow("lake.db.t.*", **ANN), "isAuditEnabled": False}
    assert answer(engine(allow("lake.db.t.*", **ANN)), "lake.db.t.c").audited
    assert not answer(engine(quiet), "lake.db.t.c").audited
    config = {
        "ranger.plugin.audit.filters": "[{'accessResult':'DENIED','isAudited':true},{'isAudited':false}]"
    }
    found = Engine(service(quiet, serviceConfig=config))
    assert not answer(found, "lake.db.t.c").audited
    assert answer(found, "lake.db.t.c", user="bob").audited
    assert answer(Engine(service(quiet, auditMode="audit-all")), "lake.db.t.c").audited


def test_the_index_offers_no_less_than_all_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ("lake.db.t.c", "lake.d?.T*.c|d", "*.db.*", "lake", "l*.d*b.t.*", "lake.{USER}.t.c")
    found = engine(*(allow(path, users=[f"u{place}"]) for place, path in enumerate(paths)))
    for place in range(len(paths)):
        for path in ("lake.db.t.c", "LAKE.DB.T.D", "lake.db.t", "lake", f"lake.u{place}.t.c"):
            request = asked(path, user=f"u{place}")
            index = found.policies.index(PolicyType.ACCESS)
            exact = [each for each in index.policies if _is_about(each, request)]
            assert [each for each in index.likely(request) if each in exact] == exact


def _is_about(document: object, request: object) -> bool:
    from lockgate.framework.governance.ranger.engine.search import names_of

    return any(
        each.match(request.resource, None, names_of(request)).is_whole  # type: ignore[attr-defined]  # of the engine's own class
        for each in document.resources  # type: ignore[attr-defined]  # as above
    )


def test_policies_without_a_service_definition_are_refused() -> None:
    with pytest.raises(InputError, match="serviceDef"):
        Engine({"policies": []})


def tag_service(*policies: dict[str, object], **more: object) -> dict[str, object]:
    """A tag service, in whose words accesses and masks have the name of their component."""
    accesses = [{"itemId": 1, "name": "paimon:select"}, {"itemId": 2, "name": "hive:select"}]
    section = {"accessTypes": accesses[:1], "resources": [{"name": "tag"}]}
    masks = [{"itemId": 1, "name": "paimon:MASK_NULL"}, {"itemId": 2, "name": "paimon:MASK_NONE"}]
    definition = {
        "name": "tag",
        "resources": [{"name": "tag", "level": 1, "matcher": "RangerDefaultResourceMatcher"}],
        "accessTypes": accesses,
        "dataMaskDef": {**section, "maskTypes": masks},
    }
    return {"serviceDef": definition, "policies": [*policies], **more}


def tag_mask(kind: str, access: str = "paimon:select", **info: str) -> dict[str, object]:
    return {
        "id": 90,
        "name": "tagged",
        "policyType": 1,
        "resources": {"tag": {"values": ["PII"]}},
        "dataMaskPolicyItems": [{**item(access, **ANN), "dataMaskInfo": {"dataMaskType": kind, **info}}],
    }


PII = {"tags": [{"type": "PII", "matchType": "SELF"}]}


def test_masks_of_tags_are_read_as_the_admin_writes_them() -> None:
    def mask_of(*policies: dict[str, object]) -> str | None:
        found = Engine(service(tagPolicies=tag_service(*policies)))
        return answer(found, "lake.db.t.c", kind=PolicyType.MASK, **PII).info.get("maskType")

    assert mask_of(tag_mask("paimon:MASK_NULL")) == "MASK_NULL"
    assert mask_of(tag_mask("paimon:MASK_NONE")) == "MASK_NONE"
    assert mask_of(tag_mask("MASK_NULL", "select")) == "MASK_NULL"
    assert mask_of(tag_mask("hive:MASK_NULL")) is None
    assert mask_of(tag_mask("paimon:MASK_NULL", "hive:select")) is None


def test_a_mask_takes_the_place_of_another_with_nothing_left_of_it() -> None:
    of_tag = tag_mask("paimon:MASK_NULL", conditionExpr="id > 1", valueExpr="'x'")
    found = Engine(
        service(mask("lake.db.t.c", "MASK_HASH", priority=1, **ANN), tagPolicies=tag_service(of_tag))
    )
    info = answer(found, "lake.db.t.c", kind=PolicyType.MASK, **PII).info
    assert info == {"maskType": "MASK_HASH"}


def test_an_access_type_of_a_tag_implies_what_the_tag_service_says() -> None:
    everything = {
        "id": 91,
        "name": "everything",
        "resources": {"tag": {"values": ["PII"]}},
        "policyItems": [item("paimon:all", **ANN)],
    }
    found = Engine(service(tagPolicies=tag_service(everything)))
    assert not allowed(found, "lake.db.t.c", **PII)


def test_a_denial_by_tags_needs_an_allow_of_higher_priority_that_stands() -> None:
    denial = {
        "id": 92,
        "name": "denial",
        "resources": {"tag": {"values": ["PII"]}},
        "denyPolicyItems": [item("paimon:select", **ANN)],
    }

    def is_open(*policies: dict[str, object]) -> bool:
        return allowed(Engine(service(*policies, tagPolicies=tag_service(denial))), "lake.db.t.c", **PII)

    above = {**allow("lake.db.t.c", **ANN), "policyPriority": 1}
    assert is_open(above)
    assert not is_open(allow("lake.db.t.c", **ANN))
    # A policy that could deny leaves the search open, and no other policy of the resource ends it.
    may_deny = {**above, "denyPolicyItems": [item("drop", users=["bob"])]}
    assert not is_open(may_deny)
    assert is_open(may_deny, allow("lake.db.t.c", users=["bob"]))
    # An earlier policy with something to say, but not of this access, decides as the tags did.
    first = {**deny("lake.db.t.c", "drop", **ANN), "policyPriority": 2}
    assert not is_open(first, above)


def test_a_mode_goes_before_filters_of_tags_and_filters_of_resources_before_it() -> None:
    nothing = "[{'isAudited':false}]"
    quiet = {**allow("lake.db.t.*", **ANN), "isAuditEnabled": False}
    config = {"ranger.plugin.audit.filters": nothing}
    of_tags = Engine(service(quiet, auditMode="audit-all", tagPolicies=tag_service(serviceConfig=config)))
    of_resources = Engine(service(quiet, auditMode="audit-all", serviceConfig=config))
    assert answer(of_tags, "lake.db.t.c", **PII).audited
    assert not answer(of_resources, "lake.db.t.c").audited


def test_a_script_that_turns_out_to_be_unknown_opens_nothing() -> None:
    unknown = {"conditions": [{"type": "script", "values": ["USER['dept'].replace('a', 'b') == 'x'"]}]}
    users = {"userAttrMapping": {"ann": {"dept": "eng"}}}
    on_allow = Engine(service(allow("lake.db.*", **ANN, **unknown)), users=users)
    assert not allowed(on_allow, "lake.db.t")
    on_deny = Engine(service(allow("lake.db.*", **ANN), deny("lake.db.*", **ANN, **unknown)), users=users)
    with pytest.raises(PolicyError, match="replace"):
        allowed(on_deny, "lake.db.t")


@pytest.mark.parametrize(
    ("kind", "values", "tags", "holds"),
    [
        ("AnyOfExpectedTagsPresent", ["PII,PCI"], ["PII"], False),
        ("AnyOfExpectedTagsPresent", [" PII ", "PCI"], ["PII"], True),
        ("NoneOfExpectedTagsPresent", ["PII,PCI"], ["PII"], True),
        ("NoneOfExpectedTagsPresent", ["PII"], ["PII"], False),
        ("TagsAllPresent", ["PII,PCI"], ["PII", "PCI"], False),
        ("TagsAllPresent", ["PII", "PCI"], ["PII", "PCI"], True),
        ("TagsAllPresent", ["PII", "PCI"], ["PII"], False),
    ],
)
def test_conditions_on_tags_have_a_tag_a_value(
    kind: str, values: list[str], tags: list[str], holds: bool
) -> None:
    conditions = [{"name": "tags", "evaluator": f"org.apache.ranger.Ranger{kind}ConditionEvaluator"}]
    limited = allow("lake.db.*", **ANN, conditions=[{"type": "tags", "values": values}])
    found = Engine(service(limited, serviceDef=definition(policyConditions=conditions)))
    assert allowed(found, "lake.db.t", tags=[{"type": each} for each in tags]) is holds


@pytest.mark.parametrize(
    ("script", "holds"),
    [
        ("UG.length > 0", False),
        ("UG.indexOf('g2') >= 0", False),
        ("UR.length > 1", False),
        ("ctx.getAccessType().equals('select')", False),
        ("USER.state", False),
        ("UGNAMES", False),
        ("'yes'", False),
        ("ctx.result = true; false", False),
        ("ctx.result = true; 1", True),
        ("UGNAMES.indexOf('g2') >= 0", True),
        ("ctx.getUser().equals('ann')", True),
        ("", True),
    ],
)
def test_scripts_hold_by_a_boolean_only(script: str, holds: bool) -> None:
    limited = allow("lake.db.*", **ANN, conditions=[{"type": "script", "values": [script]}])
    users = {"userAttrMapping": {"ann": {"state": "CA"}}}
    found = Engine(service(limited), users=users)
    assert allowed(found, "lake.db.t", groups=frozenset({"g1", "g2"})) is holds
