import { expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { str } from "../values/coerce.ts";
import { arg, fn, no, type FunctionRule, type FunctionTable } from "./table.ts";

/** Functions that take a text of a known form apart. */
export const PARSERS: FunctionTable = {
  parse_url: dynamic((text) => sql`kql_parse_url(${text})`),
  parseurl: dynamic((text) => sql`kql_parse_url(${text})`),
  parse_urlquery: dynamic((text) => sql`kql_parse_urlquery(${text})`),
  parseurlquery: dynamic((text) => sql`kql_parse_urlquery(${text})`),
  parse_path: dynamic((text) => sql`kql_parse_path(${text})`),
  parse_csv: dynamic((text) => sql`to_json(kql_parse_csv(${text}))`),
  parse_command_line: fn((args, { refuse }) => {
    const kind = arg(args, 1).constant;
    if (typeof kind !== "string" || kind.toLowerCase() !== "windows") throw refuse('the parser type is "windows"');
    return expr("dynamic", sql`to_json(kql_command_line(${str(arg(args, 0))}))`);
  }),
  parse_version: fn((args) => expr("decimal", sql`kql_parse_version(${str(arg(args, 0))})`)),
  parse_xml: no("DuckDB has no function that reads XML"),
  parse_user_agent: no("it needs a large table of known browsers"),
};

function dynamic(own: (text: Expr) => Sql): FunctionRule {
  return fn((args) => expr("dynamic", own(str(arg(args, 0)))));
}
