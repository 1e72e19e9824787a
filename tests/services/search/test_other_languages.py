"""Questions in other languages than English: what asks in them is no part of what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from conftest import Clock

from agent_memory import AgentMemory

pytestmark = pytest.mark.file_only("its stores are files")


class Language(NamedTuple):
    """How notes are made of parts, what else is noted, how that is asked for, and what is not."""

    parts: tuple[str, str, str]
    note: str
    question: str
    unanswered: str


LANGUAGES: Final = {
    "Arabic": Language(
        (
            "المدير|المهندس|الطبيب|الطالب|الجار",
            "كتب التقرير|زار المكتب|أصلح الباب|طلب القهوة|باع السيارة",
            "في الصباح|يوم الأحد|بعد الاجتماع|في الرياض|قبل العطلة",
        ),
        "وقعت الشركة عقد الصيانة مع مصنع الزجاج لمدة ثلاث سنوات",
        "ما الذي تم الاتفاق عليه مع مصنع الزجاج ومتى؟",
        "من هو الذي اكتشف قارة أمريكا ومتى كان ذلك؟",
    ),
    "Chinese": Language(
        (
            "经理|工程师|医生|学生|邻居",
            "写完了报告|参观了办公室|修好了大门|点了咖啡|卖掉了汽车",
            "今天早上|上个周日|会议之后|去北京前|放假以前",
        ),
        "玻璃厂和我们公司签订的维修合同为期三年，从明年四月起生效",
        "这是和哪家的玻璃厂签的？",
        "第一个登上月球的宇航员到底是哪个国家的人？",
    ),
    "French": Language(
        (
            "Le directeur|L'ingénieur|Le médecin|L'étudiant|La voisine",
            "a rédigé le rapport|a visité le bureau|a réparé la porte|a commandé du café",
            "ce matin|dimanche dernier|après la réunion|à Lyon|avant les vacances",
        ),
        "La société a signé un contrat d'entretien de trois ans avec la verrerie",
        "À quoi la verrerie s'est-elle engagée envers nous pour l'entretien courant ?",
        "Quel est le nom de celui qui a découvert la pénicilline ?",
    ),
    "German": Language(
        (
            "Der Leiter|Die Ingenieurin|Der Arzt|Die Studentin|Der Nachbar",
            "hat den Bericht geschrieben|hat das Büro besucht|hat die Tür repariert|trank Kaffee",
            "am Morgen|am letzten Sonntag|nach der Sitzung|in Hamburg|vor den Ferien",
        ),
        "Die Firma hat mit der Glashütte einen Wartungsvertrag über drei Jahre geschlossen",
        "Für wie viele Jahre gilt, was mit der Glashütte vereinbart worden ist?",
        "Wodurch wurde die Erfindung der Dampfmaschine möglich?",
    ),
    "Japanese": Language(
        (
            "部長|技術者|医者|学生|隣人",
            "が報告書を書いた|が事務所を訪ねた|が扉を直した|がコーヒーを頼んだ|が車を売った",
            "。今朝のこと|。日曜日のこと|。会議の後|。大阪で|。休暇の前",
        ),
        "ガラス工場との保守契約は三年間で、来年の四月から有効になる",
        "ガラス工場とはどんな取り決めを交わしましたか？",
        "月面に初めて降り立った宇宙飛行士は誰でしたか？",
    ),
    "Spanish": Language(
        (
            "El director|La ingeniera|El médico|La estudiante|El vecino",
            "escribió el informe|visitó la oficina|reparó la puerta|pidió un café|vendió el coche",
            "por la mañana|el domingo pasado|tras la reunión|en Sevilla|antes del verano",
        ),
        "La empresa firmó un contrato de mantenimiento de tres años con la fábrica de vidrio",
        "¿Qué se acordó con la fábrica de vidrio y para cuándo?",
        "¿En qué siglo fue inventada la imprenta y por quiénes?",
    ),
    "Turkish": Language(
        (
            "Müdür|Mühendis|Doktor|Öğrenci|Komşu",
            "raporu yazdı|ofisi gezdi|kapıyı onardı|kahve istedi|arabayı sattı",
            "bu sabah|geçen pazar|toplantıdan sonra|İzmir'de|tatilden önce",
        ),
        "Şirket cam fabrikasıyla üç yıllık bir bakım sözleşmesi imzaladı",
        "Cam fabrikasıyla nasıl ve hangi konuda anlaşıldı?",
        "Telefonu icat eden bilim insanı kimdir ve nerede doğmuştur?",
    ),
}


@pytest.fixture(scope="module", params=LANGUAGES)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AgentMemory, Language]]:
    """A hundred notes in a language, and a page that says one thing more; nothing writes to it."""
    language = LANGUAGES[request.param]
    between = "" if request.param in ("Chinese", "Japanese") else " "
    parts = [part.split("|") for part in language.parts]
    root: Path = tmp_path_factory.mktemp("languages")
    with AgentMemory("bob", root=root, clock=Clock(), embedder=None) as memory:
        notes = [between.join(chosen) for chosen in product(*parts)]
        page = f". {between}".join([*notes[:10], language.note, *notes[10:20]])
        memory.store_many([{"content": note} for note in [*notes, page]])
        yield memory, language


def test_a_question_finds_its_answer_among_many_notes(store: tuple[AgentMemory, Language]) -> None:
    memory, language = store
    found = memory.search(language.question, 1, count_accesses=False)
    assert [language.note in hit.memory.content for hit in found] == [True]


def test_what_no_note_answers_finds_nothing(store: tuple[AgentMemory, Language]) -> None:
    memory, language = store
    assert not memory.search(language.unanswered, 5, count_accesses=False)


def test_a_query_of_small_words_alone_looks_for_them(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path, clock=Clock(), embedder=None) as memory:
        memory.store("Das Motto der Firma ist: wer, wie, was")
        memory.store("Der Bericht ist für den Leiter der Abteilung")
        assert [hit.memory.content for hit in memory.search("wer wie was", 1)] == [
            "Das Motto der Firma ist: wer, wie, was"
        ]


@pytest.mark.parametrize("query", ["什么", "りんごの", "谁的"])
def test_pairs_that_only_join_are_looked_for_where_nothing_else_is_asked(
    tmp_path: Path, query: str
) -> None:
    with AgentMemory("bob", root=tmp_path, clock=Clock(), embedder=None) as memory:
        memory.store(f"{query}三")
        assert len(memory.search(query, 1)) == 1


def test_of_a_query_in_pairs_all_that_are_words_count_alike(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path, clock=Clock(), embedder=None) as memory:
        memory.store("玻璃合同")
        (hit,) = memory.search("玻璃合同报告期限", 1, explain=True)  # three of seven pairs
    assert hit.score is not None
    assert hit.score.strength == pytest.approx((3 / 7) ** 1.2, abs=0.04)
