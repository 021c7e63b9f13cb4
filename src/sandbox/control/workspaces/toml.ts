import { parse, stringify, TomlError } from "smol-toml";
import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { mayHavePrototypeKey, prototypeKeyIn } from "../../../core/prototype-keys.ts";
import { workspaceFields, type WorkspaceContent } from "./fields.ts";

const file = z.strictObject({ workspace: z.record(z.string(), z.unknown()) });

/** A workspace as a file: the table `[workspace]` with its name, description and labels, and all of its spec. */
export function workspaceToToml({ name, description, labels, spec }: WorkspaceContent): string {
  const whole = { name, ...(description === undefined ? {} : { description }), labels, ...spec };
  return stringify({ workspace: withoutEmpty(whole) });
}

/** Throws `config_validation_error`, with line and column where the text is no TOML. */
export function workspaceOfToml(text: string): WorkspaceContent {
  const { data, error } = file.safeParse(parseToml(text));
  if (data === undefined) throw invalid("", error);
  const { name, description, labels, ...spec } = data.workspace;
  const result = workspaceFields.safeParse({ name, description, labels, spec });
  if (!result.success) throw invalid("workspace", result.error);
  return result.data;
}

function parseToml(text: string): unknown {
  const value = parseText(text.startsWith("\uFEFF") ? text.slice(1) : text);
  const place = mayHavePrototypeKey(text) ? prototypeKeyIn(value) : undefined;
  if (place !== undefined) throw new EngineError("config_validation_error", `${place}: the key is not accepted`);
  return value;
}

function parseText(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The rest of the message quotes the file, which may have secrets in it.
    const [reason = "this is no TOML"] = error.message.split("\n");
    const { line, column } = error;
    throw new EngineError("config_validation_error", `line ${line}, column ${column}: ${reason}`, { line, column });
  }
}

/** Fields of the spec have no table of their own in a file. */
function invalid(table: string, error: z.ZodError | undefined): EngineError {
  const { path = [], message = "is not accepted" } = error?.issues[0] ?? {};
  const rest = path[0] === "spec" && table !== "" ? path.slice(1) : path;
  const place = [...(table === "" ? [] : [table]), ...rest].map(String).join(".");
  return new EngineError("config_validation_error", `${place === "" ? "the file" : place}: ${message}`);
}

/** What is empty is so by default, too: a file needs not say it. */
function withoutEmpty(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      const kept = isTable(value) ? withoutEmpty(value) : value;
      return kept === undefined || isEmpty(kept) ? [] : [[name, kept]];
    }),
  );
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
