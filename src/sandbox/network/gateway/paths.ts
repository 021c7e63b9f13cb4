import { EgressRefusal } from "../http/refusal.ts";
import type { AgentRoute, GitRoute } from "./routes.ts";

/** What requests for the gateway itself begin with, in origin form. */
export const GATEWAY_PATH = "/_engine/";

/** A request for a route by its name: which, and the rest of its target from the next slash on. */
export type NamedTarget =
  | { route: "agent"; rest: string }
  /** `after`: what stands between the name of the repository and the rest, where git rewrote a longer URL. */
  | { route: "git"; place: number; after: string; rest: string };

const AGENT = /^\/_engine\/agent(?=[/?]|$)(.*)$/s;
const GIT = /^\/_engine\/git\/(0|[1-9]\d{0,3})(?:\/repo([^/?]*))?(\/.*)$/s;

/** Undefined for what names no route. `target`: of a request in origin form. */
export function namedTarget(target: string): NamedTarget | undefined {
  const agent = AGENT.exec(target)?.[1];
  if (agent !== undefined) return { route: "agent", rest: agent };
  const [, place, after = "", rest] = GIT.exec(target) ?? [];
  return place === undefined || rest === undefined ? undefined : { route: "git", place: Number(place), after, rest };
}

/** Without these, nothing in the query is a key. */
const KEY_PARAMETERS = new Set(["key", "access_token", "api_key"]);

/** A target without the keys in its query; all else is as it came. */
export function withoutKeys(target: string): string {
  const at = target.indexOf("?");
  if (at === -1) return target;
  const kept = target
    .slice(at + 1)
    .split("&")
    .filter((pair) => !KEY_PARAMETERS.has(nameOf(pair)));
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join("&")}`;
}

function nameOf(pair: string): string {
  const name = pair.split("=", 1)[0]?.replaceAll("+", " ") ?? "";
  return decoded(name).trim().toLowerCase();
}

/** The target at the upstream of the agent. Throws `EgressRefusal` for one that would leave the path of that. */
export function agentTarget({ upstream }: AgentRoute, rest: string): string {
  const at = rest.indexOf("?");
  const path = at === -1 ? rest : rest.slice(0, at);
  if (leavesPath(path)) throw new EgressRefusal(403, "the path has dots that lead out of the agent's API");
  return withoutKeys(`${upstream.path}${path === "" ? "/" : path}${at === -1 ? "" : rest.slice(at)}`);
}

/** Servers differ in how often they decode a path, and some take `\` and `;` for ends of a segment. */
function leavesPath(path: string): boolean {
  for (let text = path, last = ""; text !== last;) {
    if (/(?:^|[\\/;])\.{1,2}(?:[\\/;?#]|$)/.test(text)) return true;
    last = text;
    text = decoded(text);
  }
  return false;
}

/** As the most lenient server does: whatever can be decoded is. */
function decoded(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_whole, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

const SERVICES = "git-upload-pack|git-receive-pack";
/** Of smart HTTP (gitprotocol-http), the whole target with its query. */
const ADVERTISEMENT = new RegExp(`^/info/refs\\?service=(?:${SERVICES})$`);
const SERVICE = new RegExp(`^/(?:${SERVICES})$`);
/** Of the large files (git-lfs); no segment begins with a dot, and nothing in it is encoded. */
const LARGE_FILES = /^\/info\/lfs(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+(?:\?[\w.~%&=+:@,/-]*)?$/;
const LARGE_FILE_METHODS = new Set(["GET", "HEAD", "POST", "PUT"]);

export type GitTarget = { path: string } | { redirect: string };

/**
 * What a request for a repository may ask for: smart HTTP and large files of that very one. Everything else throws
 * `EgressRefusal`, but for one case: git rewrites every URL that begins with that of the repository, so that
 * `…/app-web` arrives as `app` and `-web`. Its client is sent to where it wanted to go, without a credential.
 */
export function gitTarget(
  { upstream }: GitRoute,
  { method, after, rest }: { method: string; after: string; rest: string },
): GitTarget {
  if (after === "" || after === ".git") {
    if (isGitRequest(method, rest)) return { path: `${upstream.path}${rest}` };
  } else if (method === "GET" && OTHER_REPOSITORY.test(`${after}${rest}`)) {
    return { redirect: `${originOf(upstream)}${upstream.path.replace(/\.git$/, "")}${after}${rest}` };
  }
  throw new EgressRefusal(403, "the credential is for one repository: only git's own requests for it are let through");
}

function isGitRequest(method: string, rest: string): boolean {
  if (method === "GET") return ADVERTISEMENT.test(rest) || LARGE_FILES.test(rest);
  if (method === "POST" && SERVICE.test(rest)) return true;
  return LARGE_FILE_METHODS.has(method) && LARGE_FILES.test(rest);
}

const OTHER_REPOSITORY = new RegExp(
  `^[A-Za-z0-9._~-]+(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/info/refs\\?service=(?:${SERVICES})$`,
);

function originOf({ secure, host, port }: GitRoute["upstream"]): string {
  return `${secure ? "https" : "http"}://${authorityOf({ secure, host, port })}`;
}

/** As in a URL and in `Host`: without the port that is usual. */
export function authorityOf({ secure, host, port }: { secure: boolean; host: string; port: number }): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (secure ? 443 : 80) ? name : `${name}:${port}`;
}
