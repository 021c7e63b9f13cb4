/** Macros over sizes in bytes: a unit is 1,024 of the one before it. */
const UNITS = "['Bytes', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB']";

export const SIZE_MACROS: Readonly<Record<string, string>> = {
  // Of two units the larger one in which the size is at least 1; NULL for a unit that there is not.
  kql_format_bytes: `(size, digits, unit) AS list_transform([{'s': size, 'd': digits,
      'at': CASE WHEN unit <> '' THEN nullif(list_position(${UNITS}, unit), 0)
        ELSE 1 + CAST(least(6, floor(log(greatest(1, abs(size))) / log(1024))) AS INTEGER) END}],
    lambda p: regexp_replace(CAST(round(p.s / pow(1024, p.at - 1), p.d) AS VARCHAR), '\\.0$', '')
      || ' ' || ${UNITS}[p.at])[1]`,
};
