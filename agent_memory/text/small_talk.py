"""Words and phrases with nothing worth keeping, by language: tables that anybody may extend.

A clause made of these alone is empty. Phrases are separated by commas, in lower case; accents,
apostrophes, punctuation and repeated letters do not matter. A phrase belongs here if it says
nothing about anybody, whatever was said before it: "I'm a vegetarian" does not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from agent_memory.text.normalize import DENSE

FILLERS: Final = """
hi, hello, hey, yo, well, so, and, but, or, oh, ah, aw, um, uh, hmm, hm, now, then, ok, okay, k,
okey, alright, all right, yes, yeah, yep, yup, yea, ya, no, nope, nah, sure, lol, lmao, rofl,
haha, hehe, omg, wow, whoa, please, pls, plz, thanks, thx, sorry, actually, btw, by the way,
anyway, anyways, fyi, really, very, so much, too, just, also, indeed, definitely, absolutely,
totally, of course, for sure, you know, i mean, i guess, i think, to be honest, tbh, honestly,
in fact, just so you know, one more thing, gosh, hooray, yay, ugh, oops, oh no, oh well, however,
great news, good news, amazing news, big news, bad news
"""
"""Words that may come before or within any utterance, with or without a comma."""

SMALL_TALK: Final[dict[str, str]] = {
    "en": """
    hi there, hey there, hello there, hello again, hiya, howdy, greetings, good morning, morning,
    good afternoon, good evening, evening, good day, good night, night, welcome, welcome back,
    how are you, how are you doing, hows it going, whats up, sup, you there, are you there,
    still there, nice to meet you, long time no see, thank you, thank u, many thanks,
    thanks a lot, thanks a bunch, thanks a ton, thanks so much, thank you so much,
    thank you very much, thanks mate, cheers, cheers mate, mate, much appreciated,
    i appreciate it, i appreciate that, appreciate it, for your help, for the help, for that,
    for everything, for this, that worked, that helped, that helps, that did it, it worked,
    it works, that was quick, that was fast, great job, good job, nice job, nice work, good work,
    great work, well done, good one, nice one, good point, good idea, great idea, good call,
    good to know, bye, goodbye, good bye, bye bye, bye for now, see you, see ya, see you later,
    see you soon, later, see you tomorrow, talk tomorrow, talk later, talk soon,
    talk to you later, take care, ttyl, cya, have a nice day, have a good day, have a great day,
    have a nice weekend, have a good weekend, have a great weekend, have a nice evening,
    have a good evening, have a great evening, enjoy your weekend, enjoy the weekend,
    enjoy your evening, see you on monday, see you monday, see you next week,
    thats all for today, thats it for today, im done for today, lets call it a day,
    have fun, good luck, congrats, congratulations, happy to help, my pleasure, youre welcome,
    enjoy, way to go, yes please, no thanks, no thank you, got it, gotcha, i see, i understand,
    understood, i get it, makes sense, that makes sense, fair enough, fair, agreed, i agree,
    i totally agree, correct, thats right, thats correct, thats fine, thats ok, thats okay,
    thats true, thats it, thats all, sure thing, fine by me, works for me, that works, works,
    sounds good, sounds good to me, sounds great, sounds fine, looks good, looks good to me,
    looks great, looks right, lgtm, love it, i love it, love this, love that, i like it, like it,
    not bad, not good, very well, same here, me too, me neither, same, deal, done, noted, roger,
    ack, good enough, interesting, funny, beautiful, sweet, neat, super, helpful,
    exactly what i wanted, what i wanted, what i needed, just what i needed, crazy, wild,
    impressive, incredible, let me think, let me see, let me check, let me try, let me try that,
    let me know, wait, wait a sec, wait a second, wait a minute, hold on, hang on, a sec, one sec,
    one second, one moment, just a moment, a moment, just a second, give me a minute,
    give me a second, give me a sec, one minute, moment, brb, be right back, ill be right back,
    im back, back, im here, im ready, im done, im listening, back to work, back to the topic,
    so anyway, lets see, my bad, my mistake, my apologies, apologies, pardon, excuse me,
    sorry about that, im sorry, no problem, no worries, dont worry, dont worry about it,
    never mind, nevermind, nvm, forget it, forget about it, whatever, its fine, its ok, its okay,
    its nothing, not now, not right now, not for now, not today, not yet, some other time,
    not really, not sure, im not sure, i dont know, i dunno, idk,
    no idea, im confused, im lost, im stuck, i dont understand, i dont get it, i dont follow,
    i have no idea, i have a question, i have another question, i have a few questions,
    quick question, one question, one more question, another question, a question, i need help,
    i need your help, help, help me, help please, with something, with this, with that, go on,
    go ahead, go for it, go, keep going, carry on, continue, proceed, next, next one, next step,
    more, one more, once more, one more time, again, try again, do it, do it again, do that,
    do this, do so, do both, run it, ship it, merge it, fix it, fix this, fix that, stop, stop it,
    stop that, cancel, cancel that, scratch that, undo, undo that, redo, redo it, revert,
    revert that, repeat, repeat that, start over, from the beginning, from scratch, lets go,
    lets continue, lets start over, lets try again, lets move on, lets begin, lets start,
    lets do it, lets do that, lets do this, come on, anything else, nothing else, something else,
    any ideas, the first one, first one, the second one, second one, the third one, the last one,
    the other one, other one, the other, another one, that one, this one, the first, the second,
    the third, we'll see, we'll do that, will do, ill do it, ill do that, ill try, ill try that,
    ill check, ill check it, the first option, the second option, the third option, option a,
    option b, option c, option 1, option 2, option 3, both, neither, none, either, all of them, all,
    not that, not that one, not this one, the latter, the former, here you go, here it is, here,
    ill remember that, ill remember it, ill remember, i will remember that, i will remember it,
    i will remember, ill keep that in mind, i will keep that in mind, ill note that,
    i will note that, ill make a note, ill make a note of that, ive noted that, i have noted that,
    ive saved that, i have saved that, ive stored that, i have stored that,
    yes final, yes final answer, final answer, thats final, thats my final answer, lol im dying,
    im dying lol, lol im dead, im dead lol, haha im dying, im dying haha, haha im dead,
    im dead haha, lmao im dying, lmao im dead,
    see above, see below, see attached, as above, as i said, like i said, as i said before,
    like i said before, as before, that is, this, that, it, what, huh, yes sir, you bet, no way,
    my god, oh my god, oh my, god, oh god, god no, god yes, hell no, hell yes, hell yeah, damn,
    dang, hooray, phew, right, exactly, cool, great,
    nice, awesome, amazing, perfect, excellent, brilliant, wonderful, fantastic, lovely, good,
    fine, true, maybe, still, at all, ty
    """,
    "es": """
    hola, buenas, buenos dias, buenas tardes, buenas noches, que tal, como estas, como va,
    gracias, muchas gracias, mil gracias, muchisimas gracias, de nada, por favor, porfa, si,
    claro, claro que si, vale, ok, perfecto, genial, estupendo, excelente, muy bien, bien, bueno,
    entiendo, entendido, de acuerdo, exacto, exactamente, correcto, no, no entiendo,
    no lo entiendo, no se, no importa, no pasa nada, perdon, perdona, lo siento, disculpa, adios,
    buen fin de semana, hasta luego, hasta manana, chao, nos vemos, otra vez, de nuevo, hazlo,
    hazlo otra vez, sigue,
    continua, adelante, espera, un momento, no funciona, sigue sin funcionar, no va, esta mal,
    eso esta mal, eso es, jaja, jajaja, intentalo de nuevo, pues, me gusta, igualmente,
    gracias por tu ayuda, por tu ayuda
    """,
    "de": """
    hallo, hi, hey, moin, servus, gruss gott, guten morgen, guten tag, guten abend, gute nacht,
    wie gehts, wie geht es dir, danke, danke schon, danke sehr, vielen dank, besten dank,
    tausend dank, bitte, bitte schon, gern, gerne, gern geschehen, ja, nein, doch, klar,
    alles klar, na klar, genau, richtig, stimmt, super, toll, prima, perfekt, gut, sehr gut,
    sehr schon, schon, okay, in ordnung, passt, verstanden, ich verstehe, ich verstehe nicht,
    ich verstehe das nicht, keine ahnung, weiss ich nicht, ich weiss nicht, egal, macht nichts,
    kein problem, entschuldigung, sorry, tut mir leid, tschuss, bis bald, bis spater, bis morgen,
    auf wiedersehen, schones wochenende, ein schones wochenende, schonen feierabend,
    schonen abend, schonen abend noch, schonen tag, schonen tag noch, machs gut, bis dann,
    bis gleich, bis nachher, danke dir, gut gemacht, gute arbeit, sieht gut aus, moment,
    einen moment, warte, warte mal, weiter, mach weiter, bitte weiter,
    noch einmal, noch mal, nochmal, noch einmal bitte, mach das, mach das bitte, mach das nochmal,
    mach es nochmal, mach das bitte nochmal, versuch es nochmal, das funktioniert nicht,
    es funktioniert nicht, funktioniert nicht, geht nicht, das geht nicht, das ist falsch, falsch,
    das stimmt nicht, das ist richtig, also, na ja, ach so, fur deine hilfe,
    danke fur deine hilfe, fur die hilfe
    """,
    "fr": """
    bonjour, bonsoir, salut, coucou, bonne nuit, bonne journee, bonne soiree,
    bon week end, bon weekend, ca va, comment ca va,
    comment vas tu, merci, merci beaucoup, merci bien, mille mercis, de rien, je vous en prie,
    sil te plait, sil vous plait, stp, svp, oui, ouais, non, si, bien sur, daccord, dac, ok,
    parfait, cest parfait, super, genial, tres bien, bien, bon, exactement, exact, cest ca,
    cest bon, ca marche, ca ne marche pas, ca marche pas, ne marche pas, ca ne fonctionne pas,
    je comprends, compris, je ne comprends pas, je comprends pas, je ne sais pas, je sais pas,
    aucune idee, pas grave, ce nest pas grave, tant pis, desole, desolee, pardon, excuse moi,
    excusez moi, au revoir, a bientot, a plus, a demain, a plus tard, encore, encore une fois,
    recommence, continue, vas y, attends, un instant, un moment, cest faux, cest bien, alors,
    donc, voila, pour ton aide, pour votre aide
    """,
    "it": """
    ciao, salve, buongiorno, buon giorno, buonasera, buona sera, buonanotte, come va, come stai,
    grazie, grazie mille, molte grazie, tante grazie, prego, per favore, per piacere, si, no,
    certo, certamente, va bene, ok, perfetto, ottimo, bene, molto bene, benissimo, bravo, esatto,
    giusto, daccordo, capisco, capito, ho capito, non capisco, non ho capito, non lo so, non so,
    non importa, scusa, scusi, mi dispiace, arrivederci, buon fine settimana, buon weekend,
    a presto,
    a domani, a dopo, ancora, di nuovo, ancora una volta, riprova, continua, avanti, aspetta,
    un momento, un attimo,
    non funziona, non va, e sbagliato, allora, dai
    """,
    "pt": """
    ola, oi, bom dia, boa tarde, boa noite, tudo bem, tudo bom, como vai, obrigado, obrigada,
    muito obrigado, muito obrigada, valeu, de nada, por favor, sim, nao, claro, com certeza,
    ta bom, esta bem, ok, beleza, perfeito, otimo, otima, legal, muito bem, bem, bom, entendi,
    entendido, nao entendi, nao entendo, nao sei, nao importa, desculpa, desculpe, sinto muito,
    tchau, bom fim de semana, adeus, ate logo, ate amanha, ate mais, de novo, outra vez,
    mais uma vez, continua, continue, espera, um momento, nao funciona, nao funcionou,
    esta errado, certo, exato, isso,
    entao
    """,
    "nl": """
    hallo, hoi, dag, goedemorgen, goedemiddag, goedenavond, goedenacht, hoe gaat het, bedankt,
    dank je, dank je wel, dankjewel, dank u, dank u wel, graag gedaan, alsjeblieft, alstublieft,
    ja, nee, natuurlijk, zeker, oke, prima, perfect, goed, heel goed, mooi, top, precies, klopt,
    juist, ik snap het, ik begrijp het, begrepen, ik snap het niet, ik begrijp het niet,
    geen idee, weet ik niet, maakt niet uit, geen probleem, sorry, tot ziens, fijn weekend,
    fijne avond, doei, tot later, tot morgen, nog een keer, opnieuw, ga door, ga verder, verder,
    wacht, een moment,
    het werkt niet, werkt niet, dat is fout
    """,
    "sv da no": """
    hej, hejsan, hei, god morgon, god morgen, god dag, god kveld, godnatt, tack, tack sa mycket,
    tusen tack, takk, tusen takk, mange tak, mange takk, tak, varsagod, vaer sa god, ja, jo, nej,
    nei, javisst, okej, bra, jattebra, perfekt, precis, exakt, forstar, jag forstar,
    jag forstar inte, jeg forstar ikke, ingen aning, vet inte, det spelar ingen roll,
    inga problem, forlat, ursakta, unnskyld, undskyld, trevlig helg, god helg,
    hej da, ha det, farvel, vi ses, igen, en gang till, fortsatt, vanta, vent, det fungerar inte,
    det funkar inte, det virker ikke
    """,
    "fi": """
    hei, moi, terve, hyvaa huomenta, hyvaa paivaa, hyvaa iltaa, kiitos, kiitos paljon,
    paljon kiitoksia, ole hyva, kylla, joo, ei, selva, hyva, hienoa, en ymmarra, en tieda,
    anteeksi, nakemiin, moikka, uudestaan, jatka, odota, se ei toimi
    """,
    "pl cs": """
    czesc, hej, dzien dobry, dobry wieczor, dobranoc, jak sie masz, dziekuje, dziekuje bardzo,
    dzieki, prosze, tak, nie, jasne, oczywiscie, dobrze, ok, super, swietnie, idealnie, dokladnie,
    rozumiem, nie rozumiem, nie wiem, niewazne, przepraszam, do widzenia, na razie, do jutra,
    jeszcze raz, dalej, czekaj, chwila, nie dziala, to nie dziala, ahoj, dobry den, dekuji, diky,
    ano, ne, dobre, nerozumim, nefunguje to, na shledanou
    """,
    "ru uk": """
    привет, здравствуй, здравствуйте, доброе утро, добрый день, добрый вечер, спокойной ночи,
    как дела, спасибо, большое спасибо, спасибо большое, пожалуйста, да, нет, конечно, хорошо, ок,
    ладно, отлично, супер, прекрасно, идеально, точно, верно, понятно, понял, поняла, понимаю,
    не понимаю, я не понимаю, не понял, не знаю, я не знаю, неважно, ничего, извини, извините,
    прости, пока, до свидания, до завтра, увидимся, еще раз, ещё раз, снова, продолжай, дальше,
    подожди, минутку, не работает, это не работает, это неправильно, неправильно, ну, так, привіт,
    дякую, добрий день, ні, добре, не розумію, ще раз
    """,
    "tr": """
    merhaba, selam, gunaydin, iyi gunler, iyi aksamlar, iyi geceler, nasilsin, tesekkurler,
    tesekkur ederim, cok tesekkurler, sagol, rica ederim, lutfen, evet, hayir, tabii, tamam, peki,
    harika, mukemmel, guzel, cok iyi, anladim, anlamadim, bilmiyorum, onemli degil, ozur dilerim,
    pardon, gorusuruz, hosca kal, tekrar, bir daha, devam, devam et, bekle, calismiyor, olmadi,
    yanlis
    """,
    "ar": """
    مرحبا, أهلا, اهلا, السلام عليكم, وعليكم السلام, صباح الخير, مساء الخير, كيف حالك, شكرا,
    شكرا جزيلا, عفوا, من فضلك, نعم, لا, طبعا, حسنا, تمام, ممتاز, رائع, جيد, فهمت, لم أفهم,
    لا أفهم, لا أعرف, آسف, مع السلامة, إلى اللقاء, مرة أخرى, استمر, انتظر, لا يعمل
    """,
    "hi": """
    नमस्ते, नमस्कार, हैलो, सुप्रभात, शुभ रात्रि, कैसे हो, आप कैसे हैं, धन्यवाद, शुक्रिया,
    बहुत धन्यवाद, बहुत बहुत धन्यवाद, कृपया, हाँ, हां, जी, जी हाँ, नहीं, ठीक है, ठीक, अच्छा,
    बहुत अच्छा, बढ़िया, समझ गया, समझ गई, समझ नहीं आया, पता नहीं, माफ़ कीजिए, अलविदा, फिर से,
    जारी रखें, रुको
    """,
    "id": """
    halo, hai, selamat pagi, selamat siang, selamat malam, apa kabar, terima kasih, makasih,
    terima kasih banyak, sama sama, tolong, ya, tidak, tentu, baik, oke, bagus, sempurna,
    mengerti, saya tidak mengerti, tidak tahu, maaf, sampai jumpa, lagi, sekali lagi, lanjut,
    lanjutkan, tunggu, tidak berfungsi
    """,
    "vi": """
    xin chao, chao, chao buoi sang, cam on, cam on ban, cam on nhieu, vang, da, khong, dung roi,
    tot, tuyet voi, toi hieu, toi khong hieu, khong biet, xin loi, tam biet, lai di, lam lai,
    tiep tuc, cho chut
    """,
    "zh": """
    你好, 您好, 嗨, 大家好, 早上好, 早安, 下午好, 晚上好, 晚安, 谢谢, 谢谢你, 谢谢您, 多谢,
    非常感谢, 感谢, 谢谢你的帮助, 你的帮助, 不客气, 不用谢, 请, 是, 是的, 对, 对的, 没错, 好,
    好的, 好吧, 行, 可以, 当然, 嗯, 嗯嗯, 哦, 哈哈, 太好了, 很好, 不错, 完美, 明白, 明白了,
    我明白了, 懂了, 知道了, 我不明白, 不明白, 不懂, 我不懂, 不知道, 我不知道, 没关系, 没问题,
    没事, 对不起, 不好意思, 抱歉, 再见, 拜拜, 明天见, 再来, 再来一次, 再试一次, 重试, 重来,
    再做一次, 继续, 下一个, 等一下, 等等, 不行, 不对, 错了, 不能用, 还是不行, 了, 啊, 吧
    """,
    "ja": """
    こんにちは, こんばんは, おはよう, おはようございます, おやすみ, おやすみなさい, もしもし,
    ありがとう, ありがとうございます, ありがとうございました, どうも, どうもありがとう,
    どういたしまして, お願いします, お願い, はい, いいえ, うん, ええ, そう, そうです, そうですね,
    もちろん, いいです, いいですね, いいね, 完璧, 素晴らしい, すごい, わかりました, 分かりました,
    わかった, 了解, 了解です, わかりません, 分かりません, 知りません, すみません, ごめん,
    ごめんなさい, 大丈夫, 大丈夫です, さようなら, またね, また明日, もう一度, もう一回, 続けて,
    続けてください, 次, 待って, ちょっと待って, 動きません, 動かない, 違います, 違う, ください,
    よ, ね
    """,
    "ko": """
    안녕, 안녕하세요, 좋은 아침, 잘 자, 감사합니다, 고마워, 고마워요, 고맙습니다, 천만에요, 네,
    예, 응, 아니요, 아니, 물론, 좋아, 좋아요, 완벽해, 완벽해요, 알겠습니다, 알겠어요, 알았어,
    이해했어요, 모르겠어요, 모르겠어, 이해가 안 돼요, 괜찮아, 괜찮아요, 죄송합니다, 미안,
    미안해요, 안녕히 가세요, 잘 가, 다시, 다시 해줘, 다시 해주세요, 계속, 계속해, 계속해 주세요,
    다음, 잠깐만, 잠깐만요, 안 돼요, 안 돼, 작동하지 않아요, 제발, 주세요
    """,
}
"""Greetings, thanks, agreement, disagreement, farewells, apologies, and orders to go on or to do
it again.
"""

REMARKS: Final[dict[str, str]] = {
    "en": """
    nice weather, lovely weather, great weather, beautiful weather, gorgeous weather,
    perfect weather, good weather, bad weather, awful weather, terrible weather, horrible weather,
    crazy weather, weird weather, strange weather, miserable weather, what weather,
    what nice weather, what lovely weather, what awful weather, weather is nice,
    weather is lovely, weather is great, weather is beautiful, weather is good, weather is bad,
    weather is awful, weather is terrible, weather is horrible, weather is crazy,
    weather is perfect, weather is gorgeous, lovely day, beautiful day, gorgeous day, glorious day,
    nice day, great day, perfect day, what a day, rainy day, sunny day, gray day, grey day,
    cloudy day, windy day, foggy day, snowy day, cold day, hot day, long day, what a long day,
    what a nice day, what a lovely day, what a beautiful day, what a gorgeous day,
    what a great day, its a nice day, its a lovely day, its a beautiful day, its a gorgeous day,
    its a great day, its been a long day, lovely morning, beautiful morning, nice morning,
    what a lovely morning, what a beautiful morning, its a lovely morning,
    its a beautiful morning, lovely evening, beautiful evening, nice evening, beautiful sunset,
    what a sunset, what a beautiful sunset, its raining, it is raining, still raining,
    raining, raining cats and dogs, its pouring, it is pouring, pouring, its drizzling,
    its snowing, it is snowing, snowing, its hailing, its storming, its thundering, its windy,
    its cloudy, its foggy, its sunny, it is sunny, sunny today, sunny again, its hot, it is hot,
    its cold, it is cold, its warm, it is warm, its chilly, its freezing, it is freezing,
    its boiling, its humid, its muggy, its getting dark, its getting late, its getting cold,
    its stopped raining, it has stopped raining, it stopped raining,
    the sun is shining, the suns shining, sun is shining, the sun is out, the suns out, suns out,
    happy monday, happy friday, happy weekend, tgif
    """,
    "es": """
    que buen tiempo, buen tiempo, mal tiempo, que mal tiempo, hace buen tiempo, hace mal tiempo,
    hace un dia precioso, que buen dia, que dia tan bonito, bonito dia, lindo dia, que lindo dia,
    hace calor, hace mucho calor, que calor, que calor hace, hace frio, hace mucho frio, que frio,
    que frio hace, hace sol, hace viento, esta lloviendo, llueve, esta nevando, nieva
    """,
    "de": """
    schones wetter, herrliches wetter, tolles wetter, gutes wetter, schlechtes wetter,
    mieses wetter, so ein wetter, was fur ein wetter, das wetter ist schon, das wetter ist super,
    das wetter ist toll, das wetter ist schlecht, schoner tag, ein schoner tag, herrlicher tag,
    was fur ein tag, was fur ein schoner tag, so ein schoner tag, langer tag, es regnet, regnet es,
    es schneit, schneit es, es ist kalt, ist das kalt, es ist heiss,
    ist das heiss, es ist warm, es ist windig,
    es ist sonnig, die sonne scheint, es wird dunkel, es wird spat
    """,
    "fr": """
    beau temps, quel beau temps, quel temps, sale temps, quel sale temps, il fait beau,
    il fait mauvais, il fait moche, belle journee, quelle belle journee, quelle journee,
    cest une belle journee, longue journee, il fait chaud, il fait tres chaud, il fait si chaud,
    quelle chaleur, il fait froid, il fait tres froid, quel froid, il pleut, il neige,
    il y a du soleil, il y a du vent
    """,
    "it": """
    bel tempo, che bel tempo, brutto tempo, che brutto tempo, che tempo, bella giornata,
    che bella giornata, fa caldo, fa molto caldo, che caldo, fa freddo, fa molto freddo,
    che freddo, piove, sta piovendo, nevica, sta nevicando, ce il sole
    """,
    "pt": """
    tempo bom, que tempo bom, que tempo, lindo dia, que lindo dia, dia lindo, que dia lindo,
    belo dia, que belo dia, esta calor, que calor, esta muito calor, esta frio, que frio,
    esta muito frio, esta chovendo, esta a chover, chove, esta nevando, esta sol
    """,
    "nl": """
    mooi weer, lekker weer, wat een weer, wat een mooi weer, slecht weer, rotweer, mooie dag,
    wat een mooie dag, wat een dag, het regent, regent het, het sneeuwt, het is koud,
    wat is het koud, het is warm, wat is het warm, de zon schijnt
    """,
    "sv da no": """
    fint vader, vilket vader, vilket fint vader, daligt vader, fint vejr, sikke et vejr, fint var,
    for et var, fin dag, vilken fin dag, vilken dag, for en dag, sikke en dag, det regnar,
    det regner, det snoar, det sner, det snor, det ar kallt, det ar varmt, det er koldt,
    det er kaldt, det er varmt, solen skiner, solen skinner
    """,
    "fi": """
    kaunis ilma, hieno ilma, kaunis paiva, sataa, sataa vetta, sataa lunta, on kylma, on kuuma,
    aurinko paistaa
    """,
    "pl cs": """
    ladna pogoda, piekna pogoda, brzydka pogoda, co za pogoda, ladny dzien, piekny dzien,
    co za dzien, pada deszcz, pada snieg, jest zimno, ale zimno, jest goraco, ale goraco,
    hezke pocasi, krasne pocasi, hezky den, krasny den, prsi, snezi, je zima, je horko
    """,
    "ru uk": """
    хорошая погода, отличная погода, прекрасная погода, плохая погода, какая погода,
    погода хорошая, погода отличная, погода прекрасная, прекрасный день, чудесный день,
    какой прекрасный день, идет дождь, дождь идет, идет снег, снег идет, холодно, так холодно,
    жарко, так жарко, солнце светит, гарна погода, гарний день, іде дощ, йде дощ, іде сніг
    """,
    "tr": """
    hava guzel, hava cok guzel, hava ne guzel, ne guzel hava, hava kotu, guzel bir gun,
    ne guzel bir gun, yagmur yagiyor, kar yagiyor, hava soguk, hava cok soguk, hava sicak,
    hava cok sicak
    """,
    "ar": """
    الجو جميل, الطقس جميل, الجو حار, الجو بارد, الطقس حار, الطقس بارد, يوم جميل, إنها تمطر,
    إنه يوم جميل, السماء تمطر
    """,
    "hi": """
    मौसम अच्छा है, मौसम बहुत अच्छा है, बारिश हो रही है, बहुत गर्मी है, बहुत ठंड है
    """,
    "id": """
    cuacanya bagus, cuaca bagus, cuacanya cerah, hari yang indah, hujan, hujan lagi,
    panas sekali, dingin sekali
    """,
    "vi": """
    troi dep, troi dep qua, thoi tiet dep, troi mua, troi dang mua, troi nong, troi nong qua,
    troi lanh, troi lanh qua
    """,
    "zh": """
    天气真好, 天气很好, 天气不错, 天气好, 天气不好, 天气真差, 下雨了, 又下雨了, 下雪了, 又下雪了,
    在下雨, 在下雪, 好热, 好冷, 真热, 真冷, 太热了, 太冷了
    """,
    "ja": """
    いい天気, いい天気です, 天気がいい, 天気がいいです, 雨だ, 雨です, 雨が降っています,
    雨が降ってる, 雪が降っています, 雪だ, 暑い, 暑いです, 寒い, 寒いです
    """,
    "ko": """
    날씨가 좋네요, 날씨가 좋아요, 날씨 좋다, 날씨가 좋다, 비가 와요, 비가 오네요, 눈이 와요, 더워요,
    추워요, 너무 더워요, 너무 추워요
    """,
}
"""Remarks on the weather or the day, as people open a conversation."""

_OF_NOW: Final = """
    today, tonight, right now, at the moment, outside, out there, out here, in here, around here,
    over here, this morning, this afternoon, this evening, weve got, were having, were having here,
    yet again, already, finally, the, isnt it, so, a bit, hoy, otra vez, aqui, ahora, fuera, heute,
    schon wieder, wieder, hier, gerade, draussen, jetzt, aujourdhui, encore, ici,
    dehors, oggi, di nuovo, qui, fuori, hoje, de novo, aqui, agora, la fora, vandaag, alweer, weer,
    buiten, idag, i dag, igen, har, her, ute, igjen, tanaan, taas, dzisiaj, dzis, znowu, tutaj,
    dnes, zase, tady, сегодня, снова, опять, здесь, сейчас, сьогодні, знову, тут, bugun, yine,
    burada, disarida, اليوم, هنا, الآن, आज, यहाँ, hari ini, di sini, sekarang, hom nay, o day,
    今天, 现在, 这里, 外面, 又, 呢, 今日は, 今日, また, 外は, ここは, 오늘, 오늘은, 또, 지금, 밖에
"""
"""When and where a remark is about, beside it."""

_APOSTROPHES: Final = "'\u2019"
_WORD: Final = re.compile(
    rf"[{DENSE}]|(?:(?![{DENSE}])[^\W_])+(?:[{_APOSTROPHES}](?:(?![{DENSE}])[^\W_])+)*"
)
_REPEATED: Final = re.compile(r"(.)\1{2,}")
_LAUGH: Final = re.compile(r"(?:a?(?:ha){2,}h?|(?:ja){2,}j?|(?:he){2,}h?|l+o+l+)")
_WE_WILL: Final = re.compile(rf"we[{_APOSTROPHES}]ll", re.IGNORECASE)
"""Not a "well" that an order may follow: "We'll send somebody tomorrow" is a promise."""
_BREAK: Final = re.compile(r"[\s,;:.!?\u2026\u2013\u2014\u3001\u3002\uff0c\uff01\uff1a)]+")
_FOLDED: Final = str.maketrans({"ß": "ss", "ł": "l", "đ": "d", "ø": "o", "æ": "ae"})
"""Letters that Unicode does not take apart, as the tables have them."""
_INTENSE: Final = frozenset("so very really still finally just pretty quite super too".split())
_STOPS: Final = " .!\u2026\u3002\uff01"
_LONGEST_REMARK: Final = 40
"""Maximum words of a remark; of a script without spaces, characters."""
_Phrases = dict[str, list[tuple[str, ...]]]


class Word(NamedTuple):
    """A word as it is compared with the tables, and its end in the text."""

    form: str
    end: int


def words_said(text: str) -> list[Word]:
    """Return the words of a text; in scripts without spaces, each character."""
    return [Word(_form(match[0]), match.end()) for match in _WORD.finditer(text)]


def is_made_of_small_talk(text: str) -> bool:
    """Return whether a text consists of phrases in the tables alone."""
    words = words_said(text)
    return _run_of(words, _all_phrases()) == len(words)


def is_remark_of_the_moment(text: str) -> bool:
    """Return whether a text only remarks on the weather or the day, as it is just now."""
    words = [word for word in words_said(text.rstrip(_STOPS)) if word.form not in _INTENSE]
    return (
        len(words) <= _LONGEST_REMARK
        and _run_of(words, _all_phrases(with_remarks=True)) == len(words)
        and any(_phrase_at(words, place, _remarks()) for place in range(len(words)))
    )


def opening_end(text: str) -> int:
    """Return where the content of a text begins: after fillers and phrases up to a comma."""
    words = words_said(text)
    end = 0
    place = 0
    while place < len(words):
        length = _phrase_at(words, place, _fillers())
        if not length:
            length = _phrase_at(words, place, _all_phrases())
            stop = words[place + length - 1].end if length else 0
            if not length or not _BREAK.match(text, stop) or text[stop].isspace():
                break
        place += length
        end = words[place - 1].end
    pause = _BREAK.match(text, end) if end else None
    return pause.end() if pause else end


def _form(word: str) -> str:
    if _WE_WILL.fullmatch(word):
        return "we will"
    plain = word.lower()
    for apostrophe in _APOSTROPHES:
        plain = plain.replace(apostrophe, "")
    if not plain.isascii():
        letters = unicodedata.normalize("NFKD", plain)
        bare = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
        plain = unicodedata.normalize("NFC", bare).translate(_FOLDED)
    return "haha" if _LAUGH.fullmatch(plain) else _REPEATED.sub(r"\1", plain)


def _run_of(words: Sequence[Word], phrases: _Phrases) -> int:
    place = 0
    while place < len(words) and (length := _phrase_at(words, place, phrases)):
        place += length
    return place


def _phrase_at(words: Sequence[Word], place: int, phrases: _Phrases) -> int:
    """Return the length of the longest phrase at a place, in words; 0 if there is none."""
    for phrase in phrases.get(words[place].form, ()):
        if len(words) - place >= len(phrase) and all(
            words[place + offset].form == form for offset, form in enumerate(phrase)
        ):
            return len(phrase)
    return 0


@cache
def _fillers() -> _Phrases:
    return _by_first_word([FILLERS])


@cache
def _remarks() -> _Phrases:
    return _by_first_word(list(REMARKS.values()))


@cache
def _all_phrases(*, with_remarks: bool = False) -> _Phrases:
    remarks = [*REMARKS.values(), _OF_NOW] if with_remarks else []
    return _by_first_word([FILLERS, *SMALL_TALK.values(), *remarks])


def _by_first_word(tables: Sequence[str]) -> _Phrases:
    """Return the phrases of tables by their first word, the longest first."""
    phrases: _Phrases = {}
    for phrase in (phrase for table in tables for phrase in table.split(",")):
        forms = tuple(word.form for word in words_said(phrase))
        phrases.setdefault(forms[0], []).append(forms)
    for alike in phrases.values():
        alike.sort(key=len, reverse=True)
    return phrases
