import { z } from "zod";
import type { HttpRequest } from "../io/http/http.ts";

/**
 * Pages of lists that are sorted by id, the newest first. A page begins after the last id of the one before it
 * (`before`), so one that is made or deleted meanwhile moves none of the others to another page: nothing comes twice, and
 * nothing that was there all the time is left out.
 */

/** How many come at once, and by default. */
export function pageLimit(most: number, byDefault = most) {
  const rule = `accepted are integers from 1 to ${most}`;
  return z
    .string()
    .regex(/^[0-9]{1,4}$/, rule)
    .transform(Number)
    .refine((count) => count >= 1 && count <= most, rule)
    .default(byDefault);
}

export const pageBefore = z
  .uuid()
  .toLowerCase()
  .optional()
  .describe("Only those before this one: the last of the page before.");

/** What a row says of the headers of a page. */
export const PAGE_HEADERS = { Link: 'To the next page, with `rel="next"`; absent on the last one.' };

export type Page<T> = { items: T[]; headers: Record<string, string> };

/** The page that a request asks for. `list` resolves to as many as it is told, where there are so many. */
export async function pageOf<T extends { id: string }>(
  request: Pick<HttpRequest, "path" | "query">,
  limit: number,
  list: (limit: number) => Promise<T[]>,
): Promise<Page<T>> {
  // One more says whether there is another page.
  const found = await list(limit + 1);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, headers: found.length > limit && last !== undefined ? { Link: linkOf(request, last.id) } : {} };
}

/** RFC 8288: a reference to the same list, from there. */
function linkOf({ path, query }: Pick<HttpRequest, "path" | "query">, before: string): string {
  const next = new URLSearchParams(query);
  next.set("before", before);
  return `<${path}?${next.toString()}>; rel="next"`;
}
