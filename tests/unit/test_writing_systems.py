import pytest

from memory.layers.summarising.answers import foreign_script, scripts_in

ENGLISH = scripts_in("The cutover is on 3 March.")
JAPANESE = scripts_in("移行は3月3日です。")


@pytest.mark.parametrize(
    ("text", "known", "script"),
    [
        ("- The cutover is on 3 March.", ENGLISH, ""),
        ("- Die Umstellung ist am 3. März.", ENGLISH, ""),
        ("- 切换日期是三月三日。", ENGLISH, "Chinese"),
        ("- 切换日期是 3 月，负责人是 Ana。", ENGLISH, "Chinese"),
        ("- Переход третьего марта.", ENGLISH, "Cyrillic"),
        ("- The Переход is on 3 March.", ENGLISH, ""),
        ("- The cutover is on 3 March.", JAPANESE, "Latin"),
        ("- 移行は3月3日です。", JAPANESE, ""),
        ("- 切换日期是三月三日。", JAPANESE, ""),
        ("- 移行は3月3日です。PostgreSQL 18", JAPANESE, ""),
        ("- PostgreSQL 18 on 3 March", scripts_in("PostgreSQL を 18 に"), ""),
        ("- 12.5 %", ENGLISH, ""),
        ("- The cutover is on 3 March.", scripts_in("12 + 3"), ""),
    ],
)
def test_a_script_that_the_material_lacks_is_strange(text, known, script):
    assert foreign_script(text, known) == script
