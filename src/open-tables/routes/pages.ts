import { z } from "zod";
import { EngineError } from "../../core/errors.ts";
import { isName } from "../../core/names.ts";

/** Names come in pages for clients that ask for them: by a token, empty at first, or by a size. */
export const pageQuery = {
  pageToken: z.string().max(400).optional().describe("Of the page before; empty for the first."),
  pageSize: z
    .string()
    .regex(/^[1-9][0-9]{0,5}$/, "accepted are integers from 1 to 999999")
    .transform(Number)
    .optional()
    .describe("Most names of a page."),
};

const DEFAULT_PAGE = 1_000;

type PageAsked = { pageToken?: string | undefined; pageSize?: number | undefined };

/** A page of names that are sorted, and the token of the next one. Throws `invalid_parameter` for a token of nobody's. */
export function pageOfNames(
  names: readonly string[],
  { pageToken, pageSize }: PageAsked,
): { names: readonly string[]; next: string | null } {
  if (pageToken === undefined && pageSize === undefined) return { names, next: null };
  const size = pageSize ?? DEFAULT_PAGE;
  const after = pageToken === undefined || pageToken === "" ? undefined : lastNameOf(pageToken);
  const rest = after === undefined ? names : names.filter((name) => compareNames(name, after) > 0);
  const page = rest.slice(0, size);
  const last = page.at(-1);
  return { names: page, next: rest.length > size && last !== undefined ? tokenOf(last) : null };
}

/** The order of pages. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function tokenOf(name: string): string {
  return Buffer.from(name).toString("base64url");
}

function lastNameOf(token: string): string {
  const name = Buffer.from(token, "base64url").toString();
  if (isName(name) && tokenOf(name) === token) return name;
  throw new EngineError("invalid_parameter", "the page token is none that this server gave out");
}
