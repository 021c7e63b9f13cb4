const QUOTED = String.raw`"(?:\\\\|\\"|\\|[^"\\])*(?:""|"|$)`;
const WORD = String.raw`(?:\\\\|\\"|\\|[^ \t"\\]|${QUOTED})+`;

/** Macros that take texts of a known form apart. */
export const PARSER_MACROS: Readonly<Record<string, string>> = {
  kql_query_pairs: `(query) AS list_transform(list_filter(string_split(query, '&'), lambda piece: piece <> ''),
    lambda pair: {name: regexp_extract(pair, '^[^=]*'), value: regexp_extract(pair, '^[^=]*=(?s:(.*))$', 1)})`,
  // Of a name that comes several times the first value counts.
  kql_query_bag: `(query) AS list_transform([kql_query_pairs(query)], lambda pairs: CASE WHEN len(pairs) = 0 THEN CAST('{}' AS JSON)
    ELSE to_json(map_from_entries(list_filter(pairs,
      lambda own, i: list_position(list_transform(pairs, lambda any_pair: any_pair.name), own.name) = i))) END)[1]`,
  kql_parse_url: `(t) AS list_transform([regexp_extract(t,
      '^([A-Za-z][A-Za-z0-9+.-]*)://(?:([^/?#@:]*)(?::([^/?#@]*))?@)?(\\[[^\\]/?#]*\\]|[^/?#:]*)(?::([0-9]*))?(?:/([^?#]*))?(?:\\?([^#]*))?(?:#(?s:(.*)))?$',
      ['scheme', 'username', 'password', 'host', 'port', 'path', 'query', 'fragment'])],
    lambda url: json_object('Scheme', url.scheme, 'Host', url.host, 'Port', url.port, 'Path', url.path, 'Username', url.username,
      'Password', url.password, 'Query Parameters', kql_query_bag(url.query), 'Fragment', url.fragment))[1]`,
  kql_parse_urlquery: "(query) AS json_object('Query Parameters', kql_query_bag(query))",

  kql_path_split: `(t) AS regexp_extract(t,
    '^(?:([A-Za-z][A-Za-z0-9+.-]+)://)?(?s:((?:([A-Za-z]:))?(?:.*[\\\\/])?)([^\\\\/:]*)(?::([^\\\\/]*))?)$',
    ['scheme', 'folder', 'root', 'file', 'stream'])`,
  kql_parse_path: `(t) AS list_transform([kql_path_split(t)], lambda path: list_transform([regexp_replace(path.folder, '[\\\\/]$', '')],
    lambda folder: json_object('Scheme', path.scheme, 'RootPath', path.root, 'DirectoryPath', folder,
      'DirectoryName', regexp_extract(folder, '[^\\\\/:]*$'), 'Filename', path.file,
      'Extension', regexp_extract(path.file, '\\.([^.]*)$', 1), 'AlternateDataStreamName', path.stream))[1])[1]`,

  kql_csv_record: `(t) AS regexp_extract(t, '^(?:"(?:[^"]|"")*"|[^\\r\\n])*')`,
  kql_csv_field: `(field) AS CASE WHEN regexp_full_match(field, '(?s)".*"') THEN replace(field[2:-2], '""', '"') ELSE field END`,
  kql_parse_csv: `(t) AS list_transform(regexp_extract_all(',' || kql_csv_record(t), ',("(?:[^"]|"")*"|[^,]*)', 1),
    lambda field: kql_csv_field(field))`,

  // Backslashes mean something before a quote only: two are one, and an odd one makes the quote a letter. A second quote
  // right after one that closes is a letter too.
  kql_closed: "(quotes) AS CASE WHEN quotes = 2 THEN 0 ELSE quotes END",
  kql_argument_step: `(s, atom) AS CASE
    WHEN right(atom, 1) <> '"' THEN {quotes: kql_closed(s.quotes), after: false, out: s.out || atom}
    WHEN length(atom) % 2 = 0 THEN {quotes: kql_closed(s.quotes), after: false,
      out: s.out || repeat('\\', length(atom) // 2 - 1) || '"'}
    WHEN s.after AND length(atom) = 1 THEN {quotes: (s.quotes + 1) % 3, after: true,
      out: s.out || CASE WHEN s.quotes = 2 THEN '"' ELSE '' END}
    ELSE {quotes: kql_closed(s.quotes) + 1, after: true, out: s.out || repeat('\\', length(atom) // 2)} END`,
  kql_argument: `(word) AS list_reduce(list_transform(regexp_extract_all(word, '\\\\*"|\\\\+|[^"\\\\]+'),
      lambda atom: {quotes: 0, after: false, out: atom}),
    lambda state, next_atom: kql_argument_step(state, next_atom.out), {quotes: 0, after: false, out: ''}).out`,
  kql_command_line: `(t) AS CASE WHEN t = '' THEN CAST([] AS VARCHAR[])
    ELSE list_transform([regexp_extract(t, '^(?:"([^"]*)"?|([^" \\t][^ \\t]*)|)(?s:(.*))$', ['quoted', 'plain', 'rest'])],
      lambda line: list_prepend(line.quoted || line.plain, list_transform(regexp_extract_all(line.rest, '${WORD}'),
        lambda word: kql_argument(word))))[1] END`,
  // Four parts of eight digits each.
  kql_parse_version: `(t) AS CASE WHEN regexp_full_match(t, '[0-9]{1,8}(?:\\.[0-9]{1,8}){0,3}') THEN CAST(CAST(array_to_string(
    list_transform([1, 2, 3, 4], lambda i: lpad(coalesce(string_split(t, '.')[i], '0'), 8, '0')), '') AS HUGEINT) AS DECIMAL(38, 0)) END`,
};
