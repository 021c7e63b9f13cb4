import { EngineError } from "../core/errors.ts";
import type { Route } from "./route.ts";

/** What curl sends for `-d` and `--data-binary` when nothing is said: taken as "not stated". */
const CURL_DEFAULT = "application/x-www-form-urlencoded";

/** The media type of the request's body, one of the row's; throws `unsupported_media_type`. */
export function bodyTypeOf(route: Route, contentType: string | undefined): string {
  const types = route.json === undefined ? (route.body?.types ?? []) : ["application/json"];
  const stated = mediaType(contentType ?? "");
  if (stated === "" || stated === CURL_DEFAULT) return types[0] ?? "";
  if (types.length === 0 || types.includes(stated) || types.includes("*/*")) return stated;
  throw new EngineError(
    "unsupported_media_type",
    `content type ${stated} is not taken here, only ${types.join(", ")}`,
    {
      headers: { Accept: types.join(", ") },
    },
  );
}

/**
 * Checks that the client takes what the row produces; throws `not_acceptable`. Errors are JSON whatever `Accept` says
 * (RFC 9110 §15.5.7 leaves that to the server).
 */
export function checkAccept(route: Route, accept: string | undefined): void {
  if (accept === undefined || accept.trim() === "") return;
  const produced = route.responses.flatMap(({ type }) => (type === undefined ? [] : [mediaType(type)]));
  if (produced.length === 0) return;
  const ranges = accept.split(",").map(parseRange);
  const taken = produced.some((type) => bestMatch(ranges, type).quality > 0);
  if (!taken) throw new EngineError("not_acceptable", `this route produces ${produced.join(", ")}, not ${accept}`);
}

/**
 * Of the media types that a row produces, the one that the client likes best (RFC 9110 §12.5.1): by quality, then by
 * how exactly it was named, then by the row's order. With no `Accept` it is the first.
 */
export function preferredType(produced: readonly string[], accept: string | undefined): string {
  const [first = ""] = produced;
  if (accept === undefined || accept.trim() === "") return first;
  const ranges = accept.split(",").map(parseRange);
  const rated = produced.map((type) => ({ type, ...bestMatch(ranges, type) })).filter(({ quality }) => quality > 0);
  rated.sort((a, b) => b.quality - a.quality || b.exactness - a.exactness);
  return rated[0]?.type ?? first;
}

type MediaRange = { range: string; quality: number };

function parseRange(text: string): MediaRange {
  const quality = Number(/;\s*q=([0-9.]+)/i.exec(text)?.[1] ?? 1);
  return { range: mediaType(text), quality: Number.isNaN(quality) ? 0 : quality };
}

/** The most specific range decides (RFC 9110 §12.5.1); `exactness` is 2 for the type itself, 0 for any. */
function bestMatch(ranges: readonly MediaRange[], type: string): { quality: number; exactness: number } {
  const anySubtype = `${type.split("/")[0]}/*`;
  for (const [i, candidate] of [type, anySubtype, "*/*"].entries()) {
    const match = ranges.find(({ range }) => range === candidate);
    if (match !== undefined) return { quality: match.quality, exactness: 2 - i };
  }
  return { quality: 0, exactness: 0 };
}

/** `text/HTML; charset=utf-8` → `text/html`. */
function mediaType(text: string): string {
  return (text.split(";")[0] ?? "").trim().toLowerCase();
}
