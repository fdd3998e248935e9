"""The templates behind tests/chat_template/golden: see make_chat_template_goldens. Each snippet shows one corner of
the language; the grammar below makes random ones, above all for white space control and scopes."""

CONTEXT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "  What is 2 + 2?  ", "name": "Ann"},
        {"role": "assistant", "content": "4", "tool_calls": [{"name": "add", "arguments": {"b": 2, "a": 2}}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks"}, {"type": "image"}]},
    ],
    "n": 7,
    "zero": 0,
    "neg": -3,
    "f": 2.5,
    "tiny": 1e-7,
    "whole": 10.0,
    "s": "Hello World",
    "empty": "",
    "u": "héllo wörld ✓ 你好",
    "multi": "one\n  two\n\nthree\n",
    "html": "<b>\"a\" & 'b'</b>",
    "items": [3, 1, 2, 3],
    "words": ["banana", "Apple", "cherry", "apple"],
    "mixed": [1, "a", None, True, 2.5, [1, 2], {"k": "v"}],
    "none_value": None,
    "yes": True,
    "no": False,
    "empty_list": [],
    "empty_dict": {},
    "d": {"b": 1, "a": [1, {"x": None}], "C": "text"},
    "people": [
        {"name": "Bob", "age": 30, "city": {"name": "Rome"}, "ok": True},
        {"name": "alice", "age": 25, "city": {"name": "Oslo"}, "ok": False},
        {"name": "Carol", "age": 30, "city": {"name": "Rome"}},
    ],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}, {"v": 5, "kids": []}],
    "big": 18446744073709551615,
    "schema": {"type": "object", "properties": {"q": {"type": "string", "description": "Größe \"x\" </b>"}}, "required": ["q"]},
}

SNIPPETS = r"""
plain text
=====
line one
line two

=====
a{{ n }}b
=====
{{ n }}
{{ s }}

=====
{% if yes %}
yes
{% endif %}
end
=====
  {% if yes %}
    yes
  {% endif %}
end
=====
x   {%- if yes -%}   y   {%- endif -%}   z
=====
x
  {%+ if yes %}
y
  {%+ endif %}
z
=====
x {% if yes +%}
y{% endif +%}

z
=====
{# comment #}
a {# inline #} b
  {# indented #}
c {#- strip -#}   d
{#+ keep #} e {# f +#}
g
=====
{% raw %}{{ not }} {% evaluated %}{% endraw %}
=====
  {% raw -%}
   {{ x }}
  {%- endraw %}
after
=====
{% raw %}
 keep
  {% endraw %}
tail
=====
{{- s -}}   {{- n -}}
=====
{%if yes%}a{%endif%}{%-if no-%}b{%-else-%}c{%-endif-%}
=====
{{ 'single' }}{{ "double" }}{{ 'it''s' }}{{ "a" 'b' }}
=====
{{ 'tab\tnew\nline\\ \' \x41 \u00e9 \101 \q' }}{{ "\U0001F600" }}
=====
{{ 42 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1E+20 }} {{ 12345678901234567890 }}
=====
{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789.123 }} {{ 1e-4 }} {{ 1e-5 }} {{ 100.0 }} {{ -0.0 }} {{ 1/3 }}
=====
{{ true }} {{ True }} {{ false }} {{ none }} {{ None }} {{ nothing }}
=====
{{ [1, 'a', none, true, 2.0, [], {}, (), (1,), (1, 2)] }}
=====
{{ {'a': 1, "b": [1, 2], 3: 'c', none: true, (1,2): 'tuple'} }}
=====
{{ ["it's", 'say "hi"', 'both \' and "', 'tab\t', 'é', '\x00', '\\'] }}
=====
{{ 1, 2 }}{{ () }}{{ (1) }}{{ (1,) }}
=====
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }}
=====
{{ 2 + 3 * 4 - 1 }} {{ (2 + 3) * 4 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ - n }} {{ + n }} {{ -n|abs }} {{ 10 - 2 - 3 }}
=====
{{ true + 1 }} {{ true * 3 }} {{ 1 == true }} {{ 1.0 == 1 }} {{ 'a' == 'a' }} {{ [1,2] == [1,2] }} {{ [1] == (1,) }} {{ {'a':1} == {'a':1.0} }}
=====
{{ 'a' ~ 1 ~ none ~ 2.0 ~ [1] }} {{ 1 ~ 2 }} {{ 'a' + 'b' ~ 'c' }} {{ 'a' ~ 2 * 3 }}
=====
{{ 1 + 2 ~ 3 }}
=====
{{ 'ab' * 3 }} {{ 2 * 'x' }} {{ 'a' * -1 }}| {{ [1, 2] * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }}
=====
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 != 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 < 2.5 }}
=====
{{ 1 in [1, 2] }} {{ 5 not in items }} {{ 'a' in d }} {{ 'ell' in s }} {{ 3 in (1, 2) }} {{ 1 in d.values() }} {{ 'x' in nothing }} {{ ('b', 1) in d.items() }}
=====
{{ yes and no }} {{ 'a' and 'b' }} {{ '' or 'x' }} {{ not yes }} {{ not not 1 }} {{ 0 or [] or 'z' }} {{ no and 1 / 0 }} {{ not 1 == 2 }}
=====
{{ 'a' if yes else 'b' }} {{ 'a' if no else 'b' }} [{{ 'a' if no }}] {{ 'a' if no else 'b' if no else 'c' }} {{ ('x' if yes) ~ 'y' }}
=====
{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[:-6] }} {{ s[::2] }} {{ s[::-1] }} {{ s[-3:] }} {{ s[5:2] }}| {{ s[10:100] }} {{ s[8:2:-2] }}
=====
{{ u[1] }} {{ u[-1] }} {{ u[::-1] }} {{ u|length }} {{ u[-2:] }} {{ u[4:20:3] }}
=====
{{ items[0] }} {{ items[-1] }} {{ items[1:] }} {{ items[::-1] }} {{ items[:2] }} {{ (1,2,3)[1:] }} {{ range(10)[2:5]|list }} {{ items[99] }}| {{ items['x'] }}|
=====
{{ d.b }} {{ d['b'] }} {{ d.a[1].x }} {{ d.missing }}| {{ d['missing'] }}| {{ d.get('b') }} {{ d.get('zz') }} {{ d.get('zz', 5) }} {{ items.0 }} {{ d.a.1.x }}
=====
{{ d.keys() }} {{ d.values() }} {{ d.items() }} {{ d.items()|list }} {{ d.keys()|length }}
=====
{{ {'items': 5}['items'] }} {{ {'get': 1}.get('get') }} {{ {'keys': 1}['values'] is callable }}
=====
{{ nothing.attr }}
=====
{{ nothing['x'] }}
=====
{{ d.missing.more }}
=====
{{ nothing + 1 }}
=====
{{ nothing is defined }} {{ nothing is undefined }} {{ d.x is defined }} {{ n is defined }} {{ nothing == nothing2 }} {{ nothing|length }} {{ nothing|list }} {{ nothing|default('dflt') }} {{ not nothing }}
=====
{% for x in nothing %}a{% else %}empty{% endfor %}
=====
{% for x in items %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ x }} {% endfor %}
=====
{% for x in items %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}
=====
{% for x in items %}{{ loop.cycle('odd', 'even') }}{{ loop.changed(x > 1) }} {% endfor %}
=====
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}
=====
{% for a, (b, c) in [(1, (2, 3)), (4, [5, 6])] %}{{ a }}{{ b }}{{ c }} {% endfor %}{% for (x, y) in [[1, 2]] %}{{ x + y }}{% endfor %}
=====
{% for c in 'héy' %}[{{ c }}]{% endfor %}
=====
{% for x in items if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }}{{ loop.last }} {% else %}none{% endfor %}
=====
{% for x in items if x > 100 %}{{ x }}{% else %}none{% endfor %}
=====
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
=====
{% for i in [1, 2] %}{% continue %}{% else %}else runs{% endfor %}
=====
{% for i in [1] %}{% for j in [1, 2] %}{{ loop.index }}{% break %}{% endfor %}{{ loop.index }}{% endfor %}
=====
{% for i in range(3) %}{{ loop.depth }}{% for j in range(2) %}{{ loop.depth0 }}{{ i }}{{ j }} {% endfor %}{% endfor %}
=====
{%- for node in tree recursive -%}
{{ loop.depth }}:{{ node.v }}{% if node.kids %}({{ loop(node.kids) }}){% endif %}{% if not loop.last %},{% endif %}
{%- endfor %}
=====
{% for x in 5 %}{% endfor %}
=====
{% for x in none_value %}{% endfor %}
=====
{% for a, b in [1] %}{% endfor %}
=====
{% for a, b in [[1, 2, 3]] %}{% endfor %}
=====
{% set x = 1 %}{% for i in range(3) %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}
=====
{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}
=====
{% if no %}{% set q = 2 %}{% endif %}[{{ q }}]
=====
{% set n = 1 %}{{ n }}{% for i in [1] %}{% set n = 5 %}{{ n }}{% endfor %}{{ n }}
=====
{% for i in [1, 2] %}{{ y }}{% set y = i %}{{ y }}{% endfor %}
=====
{% set ns = namespace(count=0, found=false) %}{% for i in items %}{% set ns.count = ns.count + i %}{% endfor %}{{ ns.count }} {{ ns.found }} {{ ns.missing }}| {{ ns['count'] }}
=====
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns }}
=====
{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a + ns.b }}
=====
{% set d.x = 1 %}
=====
{% set ns = namespace(_a=1) %}
=====
{% set ns = namespace() %}{% set ns._a = 1 %}
=====
{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me.me is sameas ns }}
=====
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set t = 1, 2 %}{{ t }}
=====
{% set block %}
  content {{ n }}
{% endset %}[{{ block }}]{% set b2 | upper | trim %} x {{ s }} {% endset %}[{{ b2 }}]
=====
{% set b %}{% set inner = 5 %}{{ inner }}{% endset %}{{ b }}[{{ inner }}]
=====
{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 9 %}{{ a }}{% endwith %}[{{ a }}]
=====
{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{% with %}{% set z = 1 %}{{ z }}{% endwith %}[{{ z }}]
=====
{% filter upper %}hello {{ s }}{% endfilter %} {% filter replace('l', 'L') | trim %}  hello  {% endfilter %}
=====
{% macro hello(name, greeting='Hi', punct) %}{% endmacro %}
=====
{% macro hello(name, greeting='Hi') %}{{ greeting }} {{ name }}!{% endmacro %}{{ hello('Bob') }} {{ hello('Ann', 'Yo') }} {{ hello(greeting='Hey', name='Cy') }} {{ hello() }}
=====
{% macro m(a, b=a, c=b ~ '!') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(1, c=3) }}
=====
{% macro m(a=b, b=1) %}[{{ a }}]{{ b }}{% endmacro %}{{ m() }}{% set b = 5 %}{{ m() }}
=====
{% macro m() %}{{ varargs }} {{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }} {{ m() }}
=====
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
=====
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, x=2) }}
=====
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
=====
{% macro wrap(tag) %}<{{ tag }}>{{ caller() }}</{{ tag }}>{% endmacro %}{% call wrap('b') %}inner {{ n }}{% endcall %}
=====
{% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }};{% endfor %}{% endmacro %}{% call(item, i=0) each(items) %}{{ i }}={{ item }}{% endcall %}
=====
{% macro nocaller() %}x{% endmacro %}{% call nocaller() %}y{% endcall %}
=====
{% macro opt() %}{% if caller %}[{{ caller() }}]{% else %}none{% endif %}{% endmacro %}{{ opt() }}{% call opt() %}y{% endcall %}
=====
{% macro m(caller) %}{{ caller }}{% endmacro %}
=====
{% macro fact(k) %}{% if k <= 1 %}1{% else %}{{ k * fact(k - 1)|int }}{% endif %}{% endmacro %}{{ fact(10) }}
=====
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}from b {{ late }}{% endmacro %}{% set late = 'later' %}{{ a() }}
=====
{% for i in [1, 2] %}{% macro inner() %}{{ i }}{% endmacro %}{{ inner() }}{% endfor %}[{{ inner }}]
=====
{% macro m() %}{% set leak = 1 %}{% endmacro %}{{ m() }}[{{ leak }}]{{ m }}{{ m.name }}
=====
{% generation %}answer {{ n }}{% set inside = 1 %}{% endgeneration %}[{{ inside }}]
=====
{% for m in messages %}{% if m.role == 'assistant' %}
{% generation %}
{{ m.content }}<end>
{% endgeneration %}
{% else %}
{{ m.role }}
{% endif %}{% endfor %}
=====
{% print 1, s %}{% print n %}
=====
{% block b %}in block {{ n }}{% endblock %}{% block c scoped %}{{ s }}{% endblock c %}
=====
{% set v = 1 %}{% for i in [1] %}{% set v = 2 %}{% block q %}{{ v }}{{ i }}{% endblock %}{% block r scoped %}{{ v }}{{ i }}{% endblock %}{% endfor %}
=====
{% block a %}{% endblock %}{% block a %}{% endblock %}
=====
{% autoescape false %}{{ html }}{% endautoescape %}
=====
{{ '  x y  '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ s|upper }}|{{ s|lower }}|{{ 'hello wORLD-foo (bar'|title }}|{{ 'hELLO'|capitalize }}|{{ s|length }}|{{ u|upper }}|{{ 'straße ﬁn'|upper }}
=====
{{ items|join(', ') }} {{ items|join }} {{ people|join(', ', attribute='name') }} {{ 'abc'|join('-') }} {{ d|join('+') }} {{ mixed|join('|') }}
=====
{{ nothing|default('x') }} {{ none_value|default('x') }} {{ none_value|default('x', true) }} {{ empty|d('y', boolean=true) }} {{ zero|default(5) }} {{ nothing|default }}| {{ d.zz|default('dz') }}
=====
{{ items|first }} {{ items|last }} {{ s|first }} {{ s|last }} {{ empty_list|first }}| {{ empty_list|last }}| {{ d|first }} {{ d|last }} {{ range(5)|last }}
=====
{{ s|list }} {{ d|list }} {{ (1,2)|list }} {{ range(3)|list }} {{ items|map('string')|list }}
=====
{{ people|map(attribute='name')|join(',') }} {{ people|map(attribute='city.name')|list }} {{ people|map(attribute='ok', default='?')|list }} {{ words|map('upper')|list }} {{ words|map('replace', 'a', 'A')|list }} {{ [[1,2],[3]]|map('first')|list }} {{ [[1,2],[3,4]]|map(attribute=1)|list }}
=====
{{ items|select('gt', 1)|list }} {{ items|reject('odd')|list }} {{ mixed|select|list }} {{ mixed|select('string')|list }} {{ items|select('in', [1, 2])|list }} {{ items|select('==', 3)|list }}
=====
{{ people|selectattr('age', 'equalto', 30)|map(attribute='name')|list }} {{ people|rejectattr('ok')|map(attribute='name')|list }} {{ people|selectattr('ok', 'defined')|list|length }} {{ people|selectattr('city.name', 'eq', 'Oslo')|map(attribute='age')|first }}
=====
{% set g = items|map('string') %}{{ g|list }}{{ g|list }}{% set h = items|select %}{{ h|first }}{{ h|first }}{{ h|list }}
=====
{{ items|map('string')|length }}
=====
{{ schema|tojson }}
=====
{{ schema|tojson(indent=2) }}
=====
{{ schema|tojson(indent=4, sort_keys=true) }} {{ mixed|tojson }} {{ d|tojson(separators=(',', ':')) }} {{ d|tojson(indent='\t') }} {{ u|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ '😀'|tojson(true) }} {{ html|tojson }} {{ 'a/b\n\t\\"\x7f\x01'|tojson }}
=====
{{ empty_list|tojson }} {{ empty_dict|tojson(indent=2) }} {{ [[], {}]|tojson(indent=1) }} {{ (1, 2)|tojson }} {{ 1.0|tojson }} {{ tiny|tojson }} {{ true|tojson }} {{ none|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ [1, [2, {'a': 3}]]|tojson(indent=0) }}
=====
{{ nothing|tojson }}
=====
{{ range(3)|tojson }}
=====
{{ {(1, 2): 3}|tojson }}
=====
{{ html|e }} {{ html|escape|escape }} {{ html|safe }} {{ ('<'|e) ~ '<' }} {{ ('a'|safe)|upper ~ '<' }} {{ 'x'|e is escaped }} {{ ['<'|safe] }} {{ ('a<'|safe)[1:]|e }}
=====
{{ 5|string ~ 'x' }} {{ '42'|int + 1 }} {{ 'abc'|int }} {{ 'abc'|int(7) }} {{ '3.9'|int }} {{ 3.9|int }} {{ -3.9|int }} {{ '0x1A'|int(base=16) }} {{ '101'|int(0, 2) }} {{ ' 7 '|int }} {{ true|int }} {{ none_value|int }} {{ '1_000'|int }} {{ [1]|int(9) }}
=====
{{ '2.5'|float + 1 }} {{ 3|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ '1e3'|float }} {{ ' -2 '|float }} {{ 'inf'|float }} {{ '1_0.5'|float }} {{ '.5'|float }} {{ '5.'|float }} {{ '0x10'|float }}
=====
{{ neg|abs }} {{ -2.5|abs }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 7|round }} {{ 1234|round(-2) }} {{ 1250|round(-2) }} {{ 2.4|round|int }} {{ 42.7|round(method='floor') }}
=====
{{ 'aXbXc'|replace('X', '-') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 'abc'|replace('', '.') }} {{ 12|replace(1, 2) }} {{ multi|replace('\n', '|') }}
=====
[{{ multi|indent }}] [{{ multi|indent(2, true) }}] [{{ multi|indent(2, blank=true) }}] [{{ multi|indent('> ', first=true) }}]
=====
{{ d|dictsort }} {{ d|dictsort(true) }} {{ {'x': 3, 'y': 1}|dictsort(by='value') }} {{ d|dictsort(reverse=true)|map('first')|list }} {{ d|items|list }}
=====
{{ items|sort }} {{ items|sort(reverse=true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ people|sort(attribute='age,name')|map(attribute='name')|list }} {{ people|sort(attribute='city.name', reverse=true)|map(attribute='name')|list }} {{ 'hello'|sort|join }}
=====
{{ mixed|sort }}
=====
{{ items|unique|list }} {{ words|unique|list }} {{ words|unique(true)|list }} {{ people|unique(attribute='age')|map(attribute='name')|list }}
=====
{{ items|reverse|list }} {{ s|reverse }} {{ items|sum }} {{ people|sum(attribute='age') }} {{ [[1], [2]]|sum(start=[]) }} {{ items|min }} {{ items|max }} {{ words|min }} {{ people|max(attribute='age') }} {{ empty_list|max }}| {{ [1.5, 2]|sum }}
=====
{{ ['a', 'b']|sum }}
=====
{{ range(7)|batch(3)|list }} {{ range(7)|batch(3, 'x')|list }} {{ range(7)|slice(3)|list }} {{ range(7)|slice(3, 'x')|list }}
=====
{% for key, group in people|groupby('age') %}{{ key }}: {{ group|map(attribute='name')|join(',') }}; {% endfor %}{% for g in people|groupby('city.name') %}{{ g.grouper }} {{ g.list|length }} {% endfor %}{{ words|groupby(0)|length }} {{ people|groupby('ok', default='zz')|length if false }}
=====
{{ 'a b,c'|wordcount }} {{ '%s is %d years, %.2f%% %5s|%-5s|%05d %x %r %+d'|format('Bob', 30, 1.234, 'r', 'l', 42, 255, 'q', 5) }} {{ '%(a)s-%(b)s'|format(a=1, b=2) }} {{ '%s' % 5 }} {{ '%s-%s' % (1, 2) }} {{ '%s' % [1] }} {{ '%c%c' % ('a', 98) }} {{ '%e %g %G' % (12345.678, 1e-10, 1e20) }} {{ '%o %X %#x' % (8, 255, 255) }} {{ '%*d' % (5, 42) }}
=====
{{ '%d' % 'a' }}
=====
{{ '%s %s' % 1 }}
=====
{{ '%s' % (1, 2) }}
=====
{{ '{} {}'.format(1, 'a') }} {{ '{1} {0}'.format(1, 2) }} {{ '{x} {y.b} {z[0]}'.format(x=1, y=d, z=items) }} {{ '{:>8}|{:<8}|{:^8}|{:*^9}'.format('a', 'b', 'c', 'mid') }} {{ '{:05d} {:.2f} {:,} {:x} {:#b} {:+d} {:e} {:%} {!r} {{}}'.format(42, 3.14159, 1234567, 255, 5, 3, 12345.678, 0.25, 'q') }} {{ '{:8.3f}|{:<8d}|{:_}'.format(2.5, 3, 1000000) }} {{ '{:.3}'.format('abcdef') }} {{ '{:>5}'.format(true) }}
=====
{{ '{'.format() }}
=====
{{ '{0}'.format() }}
=====
[{{ 'ab'|center(7) }}] [{{ 'abc'|center(8) }}] [{{ 'ab'.center(7, '*') }}] [{{ 'a'.ljust(4) }}] [{{ 'a'.rjust(4, '0') }}] [{{ '-5'.zfill(4) }}] [{{ '42'.zfill(5) }}]
=====
{{ 'hello big wide world'|truncate(12) }} {{ 'hello big wide world'|truncate(12, true) }} {{ 'hello big'|truncate(8) }} {{ 'hello big wide world'|truncate(9, end='', leeway=0) }} {{ 'hello big wide world'|truncate(10, leeway=3) }}
=====
{{ 'a b&c=d/é?'|urlencode }} {{ {'a b': 'c d', 'x': 1}|urlencode }} {{ [('k', '/v')]|urlencode }} {{ 5|urlencode }}
=====
{{ d|attr('items') is defined }} {{ d|attr('b') is defined }} {{ s|attr('upper')() }} {{ s|attr('nope') is defined }}
=====
{{ '  x '.strip() }}|{{ ' x '.lstrip() }}|{{ ' x '.rstrip() }}|{{ 'xyx'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ '\u00a0x\u2003'.strip() }}|{{ 'x'.strip(none) }}
=====
{{ 'a,b,,c'.split(',') }} {{ ' a  b c '.split() }} {{ 'a b c d'.split(' ', 2) }} {{ ' a  b  c '.split(none, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit(none, 1) }} {{ 'abc'.split('x') }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a<|x|>b'.split('<|x|>')[-1] }} {{ 'a-b-c'.split('-', maxsplit=1) }}
=====
{{ 'a'.split('') }}
=====
{{ multi.splitlines() }} {{ multi.splitlines(true) }} {{ 'a\r\nb\rc\x0bd\u2028e'.splitlines() }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }} {{ 'abc'.rpartition('=') }}
=====
{{ s.startswith('Hello') }} {{ s.endswith('World') }} {{ s.startswith(('x', 'He')) }} {{ s.startswith('World', 6) }} {{ s.endswith('Hello', 0, 5) }} {{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ s.find('o', 5) }} {{ s.count('l') }} {{ u.find('w') }} {{ s.index('W') }} {{ 'aaa'.count('') }} {{ 'abc'.find('', 5) }} {{ 'abc'.find('c', -1) }}
=====
{{ s.index('zz') }}
=====
{{ s.upper() }} {{ s.lower() }} {{ "they're bill's".title() }} {{ 'aB c'.swapcase() }} {{ 'hELLO wORLD'.capitalize() }} {{ 'ΑΣ ΣΑΣ'.lower() }} {{ 'Straße'.casefold() }} {{ 'ÀÉ'.lower() }}
=====
{{ 'abc'.replace('b', 'X') }} {{ 'aaa'.replace('a', 'b', 1) }} {{ '-'.join(['a', 'b']) }} {{ '-'.join('abc') }} {{ ','.join(d) }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'a\tb'.expandtabs(4) }}|{{ 'ab\tc\td'.expandtabs() }}
=====
{{ '-'.join([1]) }}
=====
{{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ 'é'.isalpha() }} {{ ''.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ '½'.isnumeric() }} {{ ' \t'.isspace() }} {{ 'aB'.islower() }} {{ 'ab1'.islower() }} {{ 'AB'.isupper() }} {{ 'Ab Cd'.istitle() }} {{ 'a_1'.isidentifier() }} {{ 'é'.isascii() }} {{ 'a\n'.isprintable() }}
=====
{{ items.count(3) }} {{ items.index(2) }} {{ (1, 2).index(2) }} {{ (2.0).is_integer() }} {{ 2.5.is_integer() }} {{ items.copy() }} {{ d.copy() == d }}
=====
{{ items.append(1) }}
=====
{{ items.append }}|{% if items.append is defined %}defined{% endif %}
=====
{{ d.update({'x': 1}) }}
=====
{{ d.pop('b') }}
=====
{{ s.__class__ }}|
=====
{{ s.__class__.__mro__ }}
=====
{{ n is number }} {{ f is number }} {{ yes is number }} {{ s is number }} {{ n is integer }} {{ yes is integer }} {{ f is float }} {{ n is float }} {{ yes is boolean }} {{ n is boolean }} {{ yes is true }} {{ no is false }} {{ 1 is true }} {{ none_value is none }} {{ nothing is none }}
=====
{{ s is string }} {{ items is string }} {{ d is mapping }} {{ items is mapping }} {{ items is iterable }} {{ s is iterable }} {{ n is iterable }} {{ items is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }} {{ (1,) is sequence }} {{ d.keys() is sequence }} {{ range(2) is sequence }}
=====
{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 5 is eq 5 }} {{ 5 is ne 5 }} {{ 5 is lt 6 }} {{ 5 is le 5 }} {{ 5 is gt 4 }} {{ 5 is ge 6 }} {{ 5 is equalto 5 }} {{ 2 is in [1, 2] }} {{ n is sameas n }} {{ none is sameas none_value }} {{ items is sameas items }} {{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }}
=====
{{ n is not string }} {{ nothing is not defined }} {{ s is defined and s is string }} {{ not n is string }} {{ n is number or false }} {{ 'y' if n is odd else 'n' }} {{ raise_exception is callable }} {{ range is callable }} {{ n is callable }}
=====
{{ n is nosuchtest }}
=====
{{ n|nosuchfilter }}
=====
{% if no %}{{ n|nosuchfilter }}{% endif %}ok {{ n|nosuchfilter if no else 'fine' }}
=====
{% for x in [] %}{{ n|nosuchfilter }}{% endfor %}
=====
{% if yes %}{{ n|nosuchfilter }}{% endif %}
=====
{{ range(5)|list }} {{ range(2, 5)|list }} {{ range(10, 0, -3)|list }} {{ range(0) }} {{ range(1, 10, 2) }} {{ 3 in range(5) }} {{ range(5)|length }} {{ range(3)[-1] }} {{ range(5).stop }}
=====
{{ range(100001) }}
=====
{{ range(1, 10, 0) }}
=====
{{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ dict({'k': 1}, z=2) }} {{ {'a': 1, 'a': 2} }} {{ {1: 'a', 1.0: 'b', true: 'c'} }}
=====
{{ {[1]: 2} }}
=====
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.current }} {% set j = joiner('|') %}{{ j() }}{{ j() }}{{ j() }}
=====
{{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('%A %B %j %I%p %y %%') }}{{ strftime_now('%Z%z') }} {{ strftime_now('%-d/%-m') }} {{ strftime_now('%f') }}
=====
{{ raise_exception('Conversation roles must alternate!') }}
=====
{% if messages|length > 1 %}{{ raise_exception('too many: ' ~ messages|length) }}{% endif %}
=====
{{ n() }}
=====
{{ s.nomethod() }}
=====
{{ s + 1 }}
=====
{{ 1 / 0 }}
=====
{{ 1 < 'a' }}
=====
{{ 'a' in 5 }}
=====
{{ 5 in 'abc' }}
=====
{{ d[1:2] }}
=====
{{ items['a':] }}
=====
{{ items[::0] }}
=====
{{ -s }}
=====
{{ n|length }}
=====
{{ big }} {{ big + 1 }} {{ big|tojson }} {{ 9223372036854775807 + 1 }} {{ 10 ** 20 }} {{ big // 3 }}
=====
{{ [1, 2, 3].__len__ }}|{{ {}.x is undefined }}
=====
{%- set loop_messages = messages[1:] -%}{%- for m in loop_messages -%}{{ '<|' ~ m['role'] ~ '|>' }}{{ m['content'] | trim if m['content'] is string else m.content|length }}{%- if not loop.last -%}{{ '\n' }}{%- endif -%}{%- endfor -%}
=====
{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content|trim }}{% else %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% elif p['type'] == 'image' %}<image>{% endif %}{% endfor %}{% endif %}
{% if m.tool_calls is defined and m.tool_calls %}{% for t in m.tool_calls %}{"name": "{{ t.name }}", "arguments": {{ t.arguments|tojson }}}{% endfor %}{% endif %}{% endfor %}
=====
{{ tools }} {{ documents }} {{ add_generation_prompt }} {{ messages[0]['role'] }} {{ messages|length }} {{ messages[-1].content[0].text }}
=====
{{ (messages|selectattr('role', 'equalto', 'user')|list)[-1].content[0].text }} {{ messages|map(attribute='role')|unique|join(',') }} {{ messages|rejectattr('role', 'in', ['system'])|list|length }}
=====
{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}{% for m in messages[::-1] %}{% set index = (messages|length - 1) - loop.index0 %}{{ index }}{% endfor %}
=====
{% for m in messages if m.role != 'system' and not ns_missing %}{{ loop.index }}{{ m.role }}{% endfor %}
=====
{% set ns = namespace(stop=false) %}{% for x in [1, 2, 3, 4] if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}
=====
{% set ns = namespace(stop=false) %}{% for x in [1, 2, 3, 4] if not ns.stop %}{{ x }}{{ loop.last }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}
=====
{% set x %}{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}{% endset %}{{ x }}{% for i in [1, 2] %}{% set y %}lost{% break %}{% endset %}{% endfor %}[{{ y }}]
=====
{% set args = [1, 2] %}{% set kw = {'c': 3} %}{% macro m(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(*args, **kw) }} {{ m(*[1, 2, 3]) }} {{ m(b=2, *[1]) }}
=====
{{ dict(a=1, **{'b': 2}) }}
=====
{{ dict(a=1, **{'a': 2}) }}
=====
{% if x is defined and x %}a{% elif n > 5 %}b{% elif true %}c{% else %}d{% endif %}{% if n == 7: %}colon{% endif %}
=====
{{ "}}" }}{{ '%}' }}{{ {'a': {'b': 1}}.a.b }}{{ {'a': {}}}}
=====
{{ [
  1,
  2,
] }}{{ (
  s
) }}{{ {'a': 1,} }}
=====
{{ s | upper | lower | length + 1 }} {{ (s ~ 'x')|length }} {{ s|length > 5 and n }} {{ [1,2,3]|sum * 2 }} {{ n|string|length }} {{ 'a' ~ 'b'|upper }} {{ -1|abs }} {{ not items|length == 4 }}
=====
{{ 'x' is string is true }}
=====
{% set true = 1 %}
=====
{% set 1 = 2 %}
=====
{% set a.b.c = 1 %}
=====
{% for loop in [1] %}{% endfor %}
=====
{% for x in [1] %}{% set loop = 5 %}{% endfor %}
=====
{% if %}{% endif %}
=====
{% if yes %}
=====
{% endif %}
=====
{% for x in [1] %}{% endif %}
=====
{{ n
=====
{{ n }
=====
{% set x = %}
=====
{{ }}
=====
{{ 'abc }}
=====
{# never closed
=====
{% raw %} never closed
=====
{% nosuchtag %}
=====
{% break %}
=====
{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
=====
{{ (1 }}
=====
{{ 1] }}
=====
{{ a b }}
=====
{{ $ }}
=====
{{ 1 + }}
=====
{{ f(a=1, 2) }}
=====
{{ dict(a=1, a=2) }}
=====
{{ [1, 2 }}
=====
{{ {'a' 1} }}
=====
{{ n.' }}
=====
{{ '\xZZ' }}
=====
{% include 'other' %}
=====
{% do x %}
=====
{% macro m(a, a) %}{% endmacro %}
=====
{% macro 5() %}{% endmacro %}
=====
{% call n %}{% endcall %}
=====
{% call n() %}{% endcall %}
=====
{% block a-b %}{% endblock %}
=====
{% with a %}{% endwith %}
=====
{{ loop.index }}
=====
{{ caller() }}
=====
{{ super() }}
=====
{% for x in [1,2] %}{% for y in [1] %}{{ loop.index }}{% else %}{% endfor %}{{ loop.index }}{% else %}{{ loop }}{% endfor %}
=====
{{ people|map(attribute='city.name.nope') | list }}{{ people|map(attribute='zz.nope')|list }}
=====
{{ 'a'|map('upper')|list }} {{ none_value|map('upper')|list }}
=====
{{ 5|select|list }}
=====
{{ d.items()|map('first')|list }} {{ d.values()|first }} {{ d.items()|last }} {{ d.keys()|sort }} {{ d.items()[0] }}|
=====
{{ 1 if true }}{{ 2 if false is defined }}{{ [1 if no, 2]|length }}
=====
{{ [nothing] }} {{ {'a': nothing} }} {{ nothing ~ 'x' }} {{ (nothing, 1) }} {{ nothing|string }} {{ nothing|upper }} {{ nothing|join(',') }}| {{ nothing|first }}| {{ nothing in [1] }}
=====
{{ 'x'|format }} {{ 5|upper }} {{ none_value|string }} {{ true|lower }} {{ [1]|string }} {{ 1.0|string }} {{ none|trim }} {{ 3|replace('3', 'x') }}
=====
{{ "%.3f" % f }} {{ "%5.1f|" % f }} {{ "%-8s|" % s[:3] }} {{ '%i' % 3.7 }} {{ "%s" % none_value }} {{ '%%' % () }}
""".strip("\n").split("\n=====\n")

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a \"place\".",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Where, e.g. Zürich"},
                "unit": {"type": "string", "description": "Of the temperature", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "description": "How many", "default": 3},
            },
            "required": ["place"],
        },
    },
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"type": "function", "name": "get_weather", "arguments": {"place": "Oslo", "days": 1}, "function": {"name": "get_weather", "arguments": {"place": "Oslo", "days": 1}}}],
}
CONVERSATIONS = [
    {"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": True},
    {"messages": [{"role": "user", "content": "Hi"}]},
    {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi ✓ \n"}], "add_generation_prompt": True},
    {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "Again"},
        ],
        "add_generation_prompt": True,
    },
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hel"}], "continue_final_message": True},
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello  "}], "continue_final_message": True},
    {"messages": [{"role": "user", "content": "Weather?"}], "tools": [TOOL], "add_generation_prompt": True},
    {
        "messages": [
            {"role": "system", "content": "Use tools."},
            {"role": "user", "content": "Weather?"},
            CALL,
            {"role": "tool", "name": "get_weather", "content": "{\"t\": 3}"},
        ],
        "tools": [TOOL],
        "add_generation_prompt": True,
    },
    {"messages": [{"role": "user", "content": "Hi", "name": None}, {"role": "assistant", "content": "4", "reasoning": "2+2"}]},
]


# --- random templates ---

SPACES = ["", "", " ", "\n", "\n\n", "  ", " \n ", "\n    ", "\t", " x ", "y", "z\n", "\n  w"]
NAMES = ["n", "s", "f", "items", "d", "x", "y", "nothing", "yes", "no", "none_value", "words", "empty", "u", "people", "mixed"]
FILTERS = [
    "upper", "lower", "trim", "length", "list", "first", "last", "join(',')", "default('dd')", "string", "int", "float", "sort",
    "reverse|list", "tojson", "title", "capitalize", "replace('l', 'L')", "abs", "round", "sum", "max", "min", "unique|list",
    "map('string')|list", "select|list", "reject('none')|list", "batch(2)|list", "indent(2)", "wordcount", "d('', true)",
    "map('upper')|join('-')", "tojson(indent=1)", "center(9)", "truncate(5)", "items|list", "dictsort", "slice(2)|list",
]
TESTS = ["defined", "none", "string", "number", "mapping", "iterable", "sequence", "odd", "true", "not defined", "not string", "in items", "eq 3", "boolean", "integer", "lower"]
OPERATORS = ["+", "-", "*", "//", "%", "~", "==", "!=", "<", ">", "<=", "in", "not in", "and", "or", "/", "**"]
METHODS = [".upper()", ".strip()", ".split()", ".keys()|list", ".get('b')", ".startswith('H')", "[0]", "[-1]", "[1:]", "[::-1]", "['b']", ".b", ".missing", "[:2]", ".find('o')", ".count(3)"]


def random_expression(r, depth):
    kind = r.randrange(13) if depth > 0 else r.randrange(4)

    def inner():
        return random_expression(r, depth - 1)

    if kind < 2:
        return r.choice(NAMES)
    if kind == 2:
        return r.choice(["1", "0", "2", "-3", "2.5", "'a b'", "'x'", "''", "true", "none", "[]", "10"])
    if kind == 3:
        return r.choice(["loop.index", "loop.first", "loop.last", "ns.c", "messages[1].role", "loop.length", "loop.previtem", "[1, 'b', n]", "{'k': s, 2: n}", "(1, s)", "range(3)"])
    if kind < 6:
        return f"{inner()}|{r.choice(FILTERS)}"
    if kind == 6:
        return f"{inner()} is {r.choice(TESTS)}"
    if kind < 9:
        return f"{inner()} {r.choice(OPERATORS)} {inner()}"
    if kind == 9:
        # No slices: jinja2 folds constants, and then those of a number are undefined instead of an error.
        return f"({inner()})" + r.choice([method for method in METHODS if ":" not in method])
    if kind == 10:
        return r.choice(NAMES) + r.choice(METHODS)
    if kind == 11:
        return f"({inner()} if {inner()}" + (f" else {inner()})" if r.random() < 0.7 else ")")
    return r.choice(["not ", "-", ""]) + f"({inner()})"


def random_tag(r, text):
    return "{%" + r.choice(["", "", "", "-", "-", "+"]) + " " + text + " " + r.choice(["", "", "", "-", "-", "+"]) + "%}"


def random_print(r):
    return "{{" + r.choice(["", "", "", "-"]) + " " + random_expression(r, r.randrange(3)) + " " + r.choice(["", "", "", "-"]) + "}}"


def random_body(r, depth):
    parts = []
    for _ in range(r.randrange(1, 4)):
        parts.append(r.choice(SPACES))
        parts.append(random_node(r, depth))
    parts.append(r.choice(SPACES))
    return "".join(parts)


def random_node(r, depth):
    kind = r.randrange(15) if depth > 0 else r.randrange(5)

    def tag(text):
        return random_tag(r, text)

    def body():
        return random_body(r, depth - 1)

    if kind < 2:
        return random_print(r)
    if kind == 2:
        return "{#" + r.choice(["", "-", "+"]) + " note " + r.choice(["", "-", "+"]) + "#}"
    if kind == 3:
        return tag(f"set {r.choice(['x', 'y', 'n', 'ns.c'])} = {random_expression(r, 2)}")
    if kind == 4:
        return r.choice(["text", "a\n", " b ", tag("raw") + " {{ r }}\n " + tag("endraw")])
    if kind < 8:
        middle = tag(f"elif {random_expression(r, 1)}") + body() if r.random() < 0.3 else ""
        middle += tag("else") + body() if r.random() < 0.4 else ""
        return tag(f"if {random_expression(r, 1)}") + body() + middle + tag("endif")
    if kind < 11:
        head = f"for x in {r.choice(['items', 'words', 's', 'd', 'people', 'nothing', 'range(3)', 'mixed', 'messages'])}"
        head += f" if {random_expression(r, 1)}" if r.random() < 0.25 else ""
        control = tag(f"if {random_expression(r, 1)}") + tag(r.choice(["break", "continue"])) + tag("endif") if r.random() < 0.25 else ""
        end = tag("else") + body() if r.random() < 0.2 else ""
        return tag(head) + body() + control + r.choice(SPACES) + end + tag("endfor")
    if kind == 11:
        return tag("set y" + r.choice(["", " | upper", " | trim"])) + body() + tag("endset")
    if kind == 12:
        name = r.choice(["m", "k"])
        call = "{{ " + name + r.choice(["()", "(1)", "(s, q=n)", "(p=x)"]) + " }}"
        return tag(f"macro {name}(p=2, q=p)") + body() + tag("endmacro") + r.choice(SPACES) + call
    if kind == 13:
        return tag(f"with x = {random_expression(r, 1)}, z = x") + body() + tag("endwith")
    return tag("filter " + r.choice(["upper", "trim", "replace('a', 'A')"])) + body() + tag("endfilter")


def random_template(r):
    return "{% set ns = namespace(c=0) %}" * (r.random() < 0.7) + random_body(r, 3)
