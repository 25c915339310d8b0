"""Small templates for make_jinja.py: a fixed list, one per rule worth
knowing, and seeded random expressions."""

FIXED = r"""
{{ 1 }} {{ 1.0 }} {{ 1e22 }} {{ 1e16 }} {{ 123456789012345680.0 }} {{ 1e-5 }} {{ 0.0001 }} {{ -0.0 }}
{{ 0.1 + 0.2 }} {{ 1/3 }} {{ 2/1 }} {{ 100000000000000000000 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1e3 }}
{{ true }} {{ False }} {{ none }} {{ None }} {{ [] }} {{ {} }} {{ () }} {{ (1,) }} {{ (1, 2) }}
{{ [1, 'a', 2.0, none, true, ['x'], {'k': (1, "it's")}] }}
{{ q }}|{{ [q] }}|{{ [u] }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }}
{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ -f|abs }} {{ -3|abs }} {{ +m }} {{ not n }} {{ not not e }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ 'a' + 1 }}
{{ 'a' + none }}
{{ 'a' ~ 1 ~ none ~ 2.5 ~ [1] ~ undefined_name ~ true }}
{{ 'ab' * 3 }} {{ 2 * [1, 2] }} {{ [1] * 0 }} {{ 'a' * -1 }} {{ (1, 2) * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }}
{{ [1] + (2,) }}
{{ true + 1 }} {{ true * 2.5 }} {{ true == 1 }} {{ 1 == 1.0 }} {{ '1' == 1 }} {{ none == false }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1,) <= (1,) }} {{ 1 != 2 }} {{ 3 >= 3.0 }}
{{ 'a' < 1 }}
{{ none < 1 }}
{{ 1 in l }} {{ 9 not in l }} {{ 'ell' in s }} {{ '' in s }} {{ 'b' in d }} {{ 'zz' in d }} {{ 1 in (1, 2) }} {{ 2 in range(3) }}
{{ 1 in 'abc' }}
{{ 1 in 5 }}
{{ 'x' in undefined_name }}
{{ undefined_name in [1] }}
{{ 0 or 'x' }} {{ '' or [] or 'end' }} {{ 1 and 2 }} {{ 0 and 2 }} {{ none or none }} {{ 1 and '' and 3 }}
{{ 'y' if t else 'n' }} {{ 'y' if e }}| {{ 1 if 0 else 2 if 0 else 3 }} {{ (1 if t) + 1 }}
{{ undefined_name }}|{{ d.nothing }}|{{ none.foo }}|{{ n.foo }}|{{ s.foo }}|{{ l.foo }}|{{ l[9] }}|{{ s[99] }}|{{ d['zz'] }}
{{ undefined_name.foo }}
{{ undefined_name['foo'] }}
{{ d.nothing.more }}
{{ undefined_name() }}
{{ undefined_name + 1 }}
{{ 1 + undefined_name }}
{{ -undefined_name }}
{{ undefined_name < 1 }}
{{ undefined_name == none }} {{ undefined_name == undefined_name }} {{ undefined_name == 1 }} {{ undefined_name != other }}
{{ undefined_name|length }} {{ undefined_name|list }} {{ undefined_name|join(',') }} {{ undefined_name|upper }}| {{ undefined_name|first }}| {{ undefined_name|trim }}|
{{ undefined_name|int }}
{{ undefined_name|float }}
{{ undefined_name|abs }}
{{ undefined_name|tojson }}
{{ undefined_name|items|list }}
{{ undefined_name|dictsort }}
{{ undefined_name|sort }} {{ undefined_name|replace('a', 'b') }}| {{ undefined_name|map('upper')|list }} {{ undefined_name|last }}
{% for x in undefined_name %}x{% else %}none{% endfor %}
{{ [undefined_name] }}
{{ undefined_name if undefined_name is defined else 'nope' }} {{ undefined_name is undefined }} {{ d.b is defined }} {{ d.q is defined }}
{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[::2] }} {{ s[-3:] }} {{ s[:-3] }} {{ s[5:2] }}| {{ s[8:2:-2] }} {{ u[3:5] }} {{ u[::-1] }}
{{ l[::-1] }} {{ l[1:] }} {{ l[-1] }} {{ l[:1] }} {{ (1, 2, 3)[1:] }} {{ range(5)[1:3]|list }} {{ l[-10:10] }} {{ l[::-2] }}
{{ s[::0] }}
{{ s['a':] }}
{{ s[true] }} {{ l[false] }} {{ l['x'] }}| {{ d[l] }}|
{{ d.b }} {{ d['b'] }} {{ d.a[1].x }} {{ d.a.1 }} {{ d['items'] }} {{ d.items()|list }} {{ d.keys() }} {{ d.values() }} {{ d.items() }} {{ ed.items() }}
{{ d.get('b') }} {{ d.get('z') }} {{ d.get('z', 5) }} {{ d|length }} {{ d|list }} {{ d|first }} {{ d|last }} {{ d.items()|first }}
{{ d.__class__ }}| {{ s.__len__ }}| {{ d._x }}|
{{ s.__class__.__mro__ }}
{{ ''.__class__() }}
{{ l.append(4) }}
{{ l.append }}|{{ d.update }}|
{{ d.update({'x': 1}) }}
{{ d.pop('b') }}
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.capitalize() }} {{ s.swapcase() }} {{ "they're bill's".title() }}
{{ u.upper() }} {{ u.lower() }} {{ u.title() }} {{ u.capitalize() }} {{ u|upper }} {{ u|lower }} {{ u|title }} {{ u|capitalize }} {{ u|length }}
{{ 'foo bar-baz (qux) [x] don\'t'|title }} {{ 'ǆ straße'|title }} {{ 'ŉ'.capitalize() }}
{{ '  a b  '.strip() }}|{{ '  a '.lstrip() }}|{{ '  a '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ u.strip('x\u200b') }}|
{{ '\n\t x \u3000'|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 5|trim }}|{{ none|trim }}
{{ 'a,b,,c'.split(',') }} {{ 'a,b,,c'.split(',', 1) }} {{ ' a  b c '.split() }} {{ ' a  b c '.split(none, 1) }} {{ ''.split() }} {{ ''.split(',') }}
{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ 'a b'.split(' ', maxsplit=1) }} {{ 'abc'.split('') }}
{{ 'aXbXc'.split('X')[-1] }} {{ 'a</think>b'.split('</think>')[0].rstrip('\n').split('<think>')[-1] }}
{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ lines|replace('\n', '|') }}
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }}
{{ s.startswith('He') }} {{ s.startswith(('x', 'H')) }} {{ s.endswith('ld') }} {{ s.startswith('ell', 1) }} {{ s.endswith('') }}
{{ s.startswith(1) }}
{{ s.startswith(['H']) }}
{{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('z') }} {{ s.index('W') }} {{ s.count('l') }} {{ s.find('o', 5) }} {{ u.find('日') }} {{ 'aaa'.count('') }} {{ s.count('o', 0, 5) }}
{{ s.index('z') }}
{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }} {{ 'abc'.replace('', '-') }} {{ s|replace('o', '0') }} {{ s|replace('l', '', 2) }} {{ 1231|replace(1, 'x') }}
{{ ','.join(ls) }} {{ ls|join('-') }} {{ l|join }} {{ rows|join(', ', attribute='k') }} {{ 'abc'|join('.') }} {{ d|join('+') }}
{{ ','.join(l) }}
{{ ','.join(5) }}
{{ none|join }}
{{ 'x'.ljust(3) }}|{{ 'x'.rjust(3, '*') }}|{{ 'xy'.center(5, '-') }}|{{ 'xyz'.center(6, '-') }}|{{ '-5'.zfill(4) }}|{{ '5'.zfill(3) }}|
{{ 'ab1'.isalnum() }} {{ 'ab'.isalpha() }} {{ '12'.isdigit() }} {{ '½'.isnumeric() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ ' \t'.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ ''.isalpha() }}
{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'abc'.removesuffix('') }}
{{ '%s is %d, %.2f, %5s|%-5s|%05d|%x|%r|%%' % ('a', 3, 2.345, 'b', 'c', 42, 255, 'q') }}
{{ '%s' % 'x' }} {{ '%s' % l }} {{ '%(a)s-%(b)s' % {'a': 1, 'b': 2} }} {{ '%s %s'|format('a', 1) }} {{ '%(x)s'|format(x=3) }} {{ '%+d' % 5 }} {{ '%e' % 12345.678 }} {{ '%g' % 0.00001 }}
{{ '%d' % 'x' }}
{{ '%s %s' % 'x' }}
{{ '%s' % ('a', 'b') }}
{{ '{} {}'.format('a', 1) }} {{ '{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=[1]) }} {{ '{:.2f}|{:>5}|{:<5}|{:^5}|{:05d}|{:,}'.format(3.14159, 'a', 'b', 'c', 42, 1234567) }} {{ '{{}}'.format() }}
{{ '{0[b]} {0.x}'.format(d) }}
{{ '{!r}'.format('x') }} {{ '{:x}'.format(255) }} {{ '{:%}'.format(0.25) }} {{ '{:+}'.format(5) }} {{ '{:*^7}'.format('mid') }} {{ '{}'.format(2.0) }} {{ '{:e}'.format(1500.0) }}
{{ '{} {}'.format(1) }}
{{ '{'.format(1) }}
{{ 'tab\there' 'joined' "\x41\u00e9\n" }} {{ '\101' }} {{ 'a\zb' }} {{ '\\' }} {{ "\"" }}
{{ l|tojson }} {{ d|tojson }} {{ q|tojson }} {{ u|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ 1.0|tojson }} {{ 1e22|tojson }} {{ none|tojson }} {{ true|tojson }}
{{ d|tojson(indent=2) }}
{{ rows|tojson(indent=4, sort_keys=true) }}
{{ d|tojson(separators=(',', ':')) }} {{ d|tojson(true, none, (';', '=')) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ el|tojson(indent=2) }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ (1, 2)|tojson }} {{ l|tojson(indent='--') }}
{{ tools|tojson }} {{ tools[0].function.parameters.properties|tojson(indent=1) }}
{{ d.items()|tojson }}
{{ range(2)|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ tools }}
{{ s|length }} {{ l|count }} {{ el|length }} {{ range(10)|length }} {{ none|length }}
{{ 5|length }}
{{ l|first }} {{ l|last }} {{ s|first }} {{ s|last }} {{ el|first }}| {{ el|last }}| {{ range(3)|last }}
{{ l|map('string')|last }}
{{ 5|first }}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ ls|sort }} {{ ls|sort(case_sensitive=true) }} {{ rows|sort(attribute='v')|map(attribute='v')|list }} {{ rows|sort(attribute='k,v')|map(attribute='v')|list }}
{{ [1, 'a']|sort }}
{{ l|reverse|list }} {{ s|reverse }} {{ range(3)|reverse|list }} {{ l|list }} {{ s|list }}
{{ ['a', 'A', 'b', 'a']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ [1, 1.0, true, 2]|unique|list }}
{{ l|min }} {{ l|max }} {{ ls|min }} {{ ls|max }} {{ el|max }}| {{ rows|max(attribute='v') }} {{ l|sum }} {{ rows|sum(attribute='v') }} {{ [0.1, 0.2, 0.3]|sum }} {{ l|sum(start=10) }}
{{ ['a']|sum }}
{{ d|dictsort }} {{ {'B': 1, 'a': 3, 'C': 2}|dictsort }} {{ {'B': 1, 'a': 3, 'C': 2}|dictsort(true) }} {{ {'B': 1, 'a': 3, 'C': 2}|dictsort(by='value', reverse=true) }} {{ d|items|list }}
{{ 5|items|list }}
{{ rows|map(attribute='k')|list }} {{ rows|map(attribute='o.p')|list }} {{ rows|map(attribute='zz', default='-')|list }} {{ ls|map('upper')|join }} {{ l|map('string')|list }} {{ ls|map('replace', 'a', 'x')|list }} {{ [[1, 2], [3]]|map('first')|list }} {{ l|map(attribute=0)|list }}
{{ rows|map(attribute='o.p.q')|list }}
{{ l|select('odd')|list }} {{ l|reject('odd')|list }} {{ [0, 1, '', 'x', none]|select|list }} {{ [0, 1, '']|reject|list }} {{ l|select('gt', 1)|list }} {{ l|select('in', [1, 2])|list }} {{ ls|select('equalto', 'a')|list }}
{{ rows|selectattr('v', 'ge', 2)|map(attribute='v')|list }} {{ rows|selectattr('o')|list|length }} {{ rows|rejectattr('k', '==', 'x')|list }} {{ rows|selectattr('o', 'defined')|list|length }} {{ rows|selectattr('o.p', 'eq', 4)|list|length }}
{% if rows|selectattr('k', 'equalto', 'zz') %}gen{% else %}empty{% endif %} {{ (rows|selectattr('k', 'equalto', 'zz')|list|length) }} {{ (rows|selectattr('k', 'equalto', 'x')|first).v }}
{{ (l|map('string'))|length }}
{{ (l|map('string'))[0] }}|
{% set g = l|map('string') %}{{ g|list }}{{ g|list }}
{{ l|batch(2)|list }} {{ l|batch(2, 0)|list }} {{ range(7)|slice(3)|list }} {{ range(7)|slice(3, 'x')|list }}
{% for g, items in rows|groupby('k') %}{{ g }}={{ items|map(attribute='v')|list }};{% endfor %}{% for g in rows|groupby('k') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}
{{ e|default('x') }}|{{ e|default('x', true) }}|{{ undefined_name|default('d') }}|{{ undefined_name|d }}|{{ none|default('q') }}|{{ none|d('q', boolean=true) }}|{{ d.nope|default([])|length }}
{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ '0x1f'|int(base=16) }} {{ '1f'|int(0, 16) }} {{ 3.9|int }} {{ -3.9|int }} {{ ' 12 '|int }} {{ '1_000'|int }} {{ none|int }} {{ l|int(9) }} {{ true|int }} {{ ''|int }} {{ 'inf'|int(3) }}
{{ '4.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ '1e3'|float }} {{ none|float }} {{ ' 2 '|float }} {{ 'nan'|float }} {{ '-inf'|float }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.567|round(2) }} {{ 42|round }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(method='floor') }} {{ 1234|round(-2) }} {{ 1.005|round(2) }} {{ 1250.0|round(-2) }} {{ 15|round(-1) }} {{ 25|round(-1) }}
{{ 'x'|round }}
{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent(2, blank=true) }}|{{ 'a\nb'|indent('> ') }}|{{ ''|indent }}|
{{ 5|indent }}
{{ 'a b-c d_e'|wordcount }} {{ '<a href="x">&\'</a>'|e }} {{ 1.5|string }} {{ l|string }} {{ s|safe }} {{ 'abc'|forceescape }}
{{ s|nofilter }}
{{ s is notest }}
{% if false %}{{ s|nofilter }}{% endif %}ok
{% if true %}{{ s|nofilter }}{% endif %}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(3) }} {{ n is number }} {{ n is integer }} {{ t is integer }} {{ t is number }} {{ t is boolean }} {{ f is float }} {{ n is float }} {{ s is string }} {{ l is string }}
{{ d is mapping }} {{ l is mapping }} {{ l is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }} {{ l is iterable }} {{ n is iterable }} {{ s is iterable }} {{ none is none }} {{ e is none }} {{ none is not none }} {{ t is true }} {{ n is true }} {{ false is false }} {{ 0 is false }}
{{ n is eq 7 }} {{ n is equalto(7) }} {{ n is ne 8 }} {{ n is gt 3 }} {{ n is lt(3) }} {{ n is ge 7 }} {{ n is le 6 }} {{ n is in [7] }} {{ n is not in [7] }} {{ 'AB' is upper }} {{ 'ab' is lower }} {{ n is sameas 7 }} {{ t is sameas true }} {{ range is callable }} {{ s is callable }} {{ 'upper' is filter }} {{ 'odd' is test }} {{ s is escaped }}
{{ d.items() is sequence }} {{ d.items() is iterable }} {{ (l|map('string')) is sequence }} {{ (l|map('string')) is iterable }} {{ undefined_name is iterable }} {{ undefined_name is sequence }} {{ undefined_name is none }} {{ undefined_name is string }} {{ none is defined }}
{{ n is odd and n is gt 3 or false }} {{ not n is odd }} {{ n is not odd }} {{ 'x' if n is odd else 'y' }} {{ [n is odd, n is even] }}
{{ 'a' is odd }}
{{ range(3) }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(1, 5, 2) }}
{{ range(100001)|length }}
{{ range(4)[::2] }} {{ range(4)[::-1] }} {{ range(10)[2:8][::3] }} {{ range(9, 0, -2)[1:3]|list }}
{{ 'xy'|sort(attribute='v') }} {{ rows|sort(attribute='zz')|length }}
{{ [undefined_name, undefined_name]|sort|length }}
{{ [undefined_name, 1]|sort }}
{{ range(0, 5, 0) }}
{{ dict(a=1, b='x') }} {{ dict([('k', 2)]) }} {{ dict({'q': 1}, r=2) }}
{% set j = joiner(', ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set _ = c.reset() %}{{ c.next() }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %a %A %j %I %p %y %% %-d') }}
{{ raise_exception('no ' ~ s) }}
{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(a=1, b=[]) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.zz }}|{{ ns }}
{% set d.x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a = 1, 2 %}{{ a }}{% set (p, q2) = (3, 4) %}{{ p }}{{ q2 }}
{% set a, b = [1, 2, 3] %}
{% set blk %}  text {{ n }} {% set inner = 5 %}{{ inner }}{% endset %}[{{ blk }}]{{ inner }}
{% set blk | upper | replace('T', 't') %}text{% endset %}{{ blk }}
{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b') | indent(2, true) %}aaa{% endfilter %}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 2 %}{{ a }}{% endwith %}{{ a }}|
{% if n > 5 %}big{% elif n > 3 %}mid{% else %}low{% endif %}{% if 0 %}x{% elif 1 %}y{% endif %}{% if e %}{% else %}z{% endif %}
{% if t %}{% set leak = 1 %}{% endif %}{{ leak }}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }} {% endfor %}
{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{{ loop.last }} {% else %}none{% endfor %}{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}
{% for x in l if x > 1 %}{{ x }}{{ loop.last }}{{ loop.nextitem }}{{ loop.revindex }}{{ loop.length }} {% endfor %}
{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{% set ns.stop = true %}{% endfor %}
{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{{ loop.last }}{% set ns.stop = true %}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [1, 2] %}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for c in 'héy' %}{{ c }}.{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}{% for i in range(3) %}{{ loop.cycle('a', 'b') }}{% endfor %}{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}
{% for x in l %}{% break %}{% else %}else{% endfor %}|{% for x in l %}{% continue %}{% else %}else{% endfor %}|{% for x in l %}{% if x == 2 %}{% break %}{% endif %}{% else %}else{% endfor %}
{% for x in l %}{% for y in ls %}{{ loop.index }}{% if y == 'A' %}{% break %}{% endif %}{% endfor %}{{ loop.index }}{% endfor %}
{% break %}
{% for x in l %}{{ loop.foo }}{% endfor %}|{{ loop }}
{% macro m(a, b=2, c=a) %}({{ a }},{{ b }},{{ c }}){% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=6) }}{{ m() }}{{ m(1, 2, 3) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, z=2) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}
{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}
{% macro fact(k) %}{% if k > 1 %}{{ k * fact(k - 1)|int }}{% else %}1{% endif %}{% endmacro %}{{ fact(10) }}
{% macro m(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call m('b') %}body {{ n }}{% endcall %}
{% macro lst(items) %}{% for i in items %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) lst(l) %}[{{ i }}:{{ x }}]{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ m() }}{% for x in [9] %}{{ m() }}{% endfor %}{{ x }}
{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{{ m.name }}{% macro m(a) %}{% endmacro %}{{ m.name }}{{ m is callable }}
{% generation %}gen {{ n }}{% set zz = 1 %}{% endgeneration %}{{ zz }}|
{% raw %}{{ x }} {% y %} {# z #}{% endraw %}|{%- raw -%}  a  {%- endraw -%}  b
a {#- comment -#} b {# {{ x }} #} c {#+ keep +#} d
a  {{- n -}}  b {{ n -}}   c {{- n }}  d
a {%- if t -%}  x  {%- endif -%} b {%+ if t +%} y {%+ endif %} z
{{ s.upper() | lower | title }}{{ (s | upper)[0:2] }}{{ [1, 2] | first + 1 }}{{ 1 if [] | length == 0 else 2 }}
{{ 'a' ~ 'b' | upper }}{{ ('a' ~ 'b') | upper }}{{ 1 + 2 | string | length }}{{ -1 | string }}
{{ {'a': 1, 'b': {'c': [1, 2]}}['b'].c[-1] }}{{ {'a': 1}.a }}{{ {1: 'x'}[1] }}{{ {true: 'y'}[1] }}{{ {'a': 1, 'a': 2} }}
{{ {[1]: 2} }}
{{ n() }}
{{ s.nomethod() }}
{{ range(1, 2, 3, 4) }}
{{ s.upper(1) }}
{{ s|upper(1) }}
{{ s|replace('a') }}
{{ dict(*[[('a', 1)]]) }}{{ '{}{}'.format(*l[:2]) }}{{ '{a}'.format(**{'a': 5}) }}
{{ d == {'b': 1, 'a': [1, {'x': none}], 'items': 'mine'} }} {{ [1, 2] == (1, 2) }} {{ [1.0] == [1] }} {{ ed == {} }}
{{ 1 if l else 2 }}{{ 1 if el else 2 }}{{ 1 if ed else 2 }}{{ 1 if ' ' else 2 }}{{ 1 if 0.0 else 2 }}{{ 1 if range(0) else 2 }}{{ 1 if d.items() else 2 }}{{ 1 if namespace() else 2 }}
{{ messages[0].role }} {{ messages[-1]['content'] }} {{ messages|length }} {{ messages[::-1][0].role }} {{ messages|map(attribute='role')|join(',') }} {{ messages[1:]|tojson }}
{% for m in messages %}{{ loop.index0 % 2 == 0 }}{{ (m.role == 'user') != (loop.index0 % 2 == 0) }}{% endfor %}
{{ f }} {{ big }} {{ small }} {{ 3.0 }} {{ 1e100 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ 123456.789 }} {{ 0.1 }} {{ 1e15 }} {{ 9007199254740993 }} {{ 1e5 }}
{{ 9223372036854775807 + 1 }} {{ 18446744073709551615 }} {{ 4294967296 * 4294967296 }} {{ -9223372036854775808 - 1 }} {{ 10 ** 20 }}
{{ 
{{ x
{% if x %}
{% endif %}
{% for %}{% endfor %}
{% for x l %}{% endfor %}
{{ (1, 2 }}
{{ [1, 2) }}
{{ 1 + }}
{{ 'abc }}
{{ a b }}
{{ a | }}
{{ a is }}
{{ a. }}
{{ a[ }}
{{ }}
{% %}
{% unknown %}
{# never closed
{% raw %} never closed
{% set 5 = 1 %}
{% set none = 1 %}
{% macro 5() %}{% endmacro %}
{% macro m(a, a) %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{{ 1 $ 2 }}
{{ 007 }}
{{ x is a is b }}
{% else %}
{% elif x %}
{% call 5 %}{% endcall %}
{% if x %}{% endfor %}
}} %} #} { % {
{{ "}}" }} {{ '%}' }} {{ {'a': {'b': 1}} }}
"""

BLOCKS = [
    "line\n  {% if true %}  \n    x\n  {% endif %}\nend\n",
    "  {%- for x in l %}\n  {{ x }}\n  {%- endfor %}\nz",
    "{% for x in l %}\n{{ x }}\n{% endfor %}\n\n",
    "a\n\n{#  c  #}\n\nb\n\n",
    "a\r\n{% if t %}\r\nb\rc{% endif %}\r\n",
    "  {{ n }}\n  {{- n }}\n",
    "\t{% set x = 1 %}\t\n{{ x }}",
    "x {% if t %}\n y{% endif %}\n",
    "{% if t %}\n\n y\n{% endif %}\n\n\n",
    "  {#- a -#}  \n  b {#+ c #}\n d",
    "{% raw %}\n a\n  {% endraw %}\n b",
    "{%- raw %} {{ a }} {% endraw -%}\n b",
    "  {% raw -%}  a  {%- endraw %}  \n b",
    "  {%+ if t %}x{% endif %}",
    "{{ '\n' }}{{ \"a\n b\" }}",
    "{% if t -%}\n  a\n{%- endif -%}\n\n b",
    "a{% if t %}{% endif %}\nb",
    "\u00a0{% if t %}x{% endif %}\u00a0\n",
    "{% set x %}\n  a\n{% endset %}[{{ x }}]",
    "{{- '  x  ' -}}  \n\n  {{- 'y' }}",
    "\n",
    "",
    "\n\n",
    "é{# ü #}日{{ '本' }}",
]

ATOMS = ["n", "m", "f", "t", "none", "s", "e", "l", "el", "ls", "d", "ed", "u",
         "0", "1", "2", "-1", "0.5", "'a'", "'l'", "''", "[1, 2]", "(1, 2)",
         "{'a': 1}", "missing", "rows", "q", "true", "false"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=",
          "in", "not in", "and", "or"]
FILTERS = ["length", "upper", "lower", "title", "capitalize", "trim", "first",
           "last", "list", "string", "int", "float", "abs", "round", "tojson",
           "join", "join('-')", "sort", "reverse|list", "unique|list", "sum",
           "min", "max", "items|list", "dictsort", "default('D')",
           "default('D', true)", "replace('l', 'L')", "map('string')|list",
           "select|list", "indent(1)", "wordcount", "batch(2)|list", "escape",
           "slice(2)|list", "count"]
TESTS = ["defined", "none", "string", "mapping", "sequence", "iterable",
         "number", "integer", "float", "boolean", "true", "odd", "even",
         "divisibleby 2", "eq 1", "in [1, 's']", "lower", "upper", "callable"]
ACCESS = ["[0]", "[-1]", "[1:]", "[::-1]", "[:2]", ".a", "['a']", ".items()",
          ".upper()", ".split('l')", ".strip('H')", ".get('a')", ".keys()",
          ".startswith('H')", ".b", "[n]", "[::2]", ".count(1)", ".title()"]


def expression(rng, depth):
    """A random expression; many raise, which is to be equal as well."""
    if depth == 0:
        return rng.choice(ATOMS)
    kind = rng.randrange(6)
    inner = expression(rng, depth - 1)
    if kind == 0:
        other = expression(rng, rng.randrange(depth))
        return f"({inner} {rng.choice(BINARY)} {other})"
    if kind in (1, 2):
        return f"({inner}|{rng.choice(FILTERS)})"
    if kind == 3:
        return f"({inner} is {rng.choice(['', 'not '])}{rng.choice(TESTS)})"
    if kind == 4:
        return f"({inner}{rng.choice(ACCESS)})"
    return f"({inner} if {rng.choice(ATOMS)} else {rng.choice(ATOMS)})"


def micro_cases(rng):
    cases = [line for line in FIXED.split("\n") if line]
    cases += BLOCKS
    cases += ["{{ " + expression(rng, 1 + i % 3) + " }}" for i in range(700)]
    # What prints an address or an object that is ours alone.
    return [case for case in dict.fromkeys(cases)
            if ".upper }}" not in case]
