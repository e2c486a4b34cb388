"""How a page is read in the direction of its cursor."""

from fairlead_gateway.routes.pages import in_page_order, scan_order


def test_i22_a_page_before_its_anchor_is_read_backwards() -> None:
    assert scan_order("desc", "next") == "desc"
    assert scan_order("desc", "previous") == "asc"
    assert scan_order("asc", "previous") == "desc"


def test_i22_a_page_has_the_order_of_its_list() -> None:
    assert in_page_order([1, 2], "next") == (1, 2)
    assert in_page_order([2, 1], "previous") == (1, 2)
