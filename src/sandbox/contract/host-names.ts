import { isIP } from "node:net";
import { domainToASCII } from "node:url";

/**
 * Names of hosts as they are compared: lower case, without the dot of the root, in ASCII (IDNA), addresses in their
 * usual form (`0x7f.1` is `127.0.0.1`, as the WHATWG URL parser reads it). What no host can be called is no name.
 */
export function canonicalHost(text: string): string | undefined {
  if (text === "" || text.length > MAX_CHARS) return undefined;
  if (text.startsWith("[")) return text.endsWith("]") ? canonicalIpv6(text.slice(1, -1)) : undefined;
  if (text.includes(":")) return canonicalIpv6(text);
  // What the parser of URLs takes out, or takes for an end, is refused instead.
  if (FORBIDDEN.test(text)) return undefined;
  const ascii = domainToASCII(text).toLowerCase().replace(/\.$/, "");
  if (isIP(ascii) === 4) return ascii;
  return ascii.length <= MAX_NAME_CHARS && ascii.split(".").every((label) => LABEL.test(label)) ? ascii : undefined;
}

/** A rule of `allowed_hosts` in the form in which it is compared: a name, or `*.` before one. */
export function canonicalRule(text: string): string | undefined {
  if (!text.startsWith("*.")) return canonicalHost(text);
  const name = canonicalHost(text.slice(2));
  return name === undefined || isIP(name) !== 0 ? undefined : `*.${name}`;
}

/** `*.example.com` stands for every name below `example.com`, and not for itself. No rules: nothing is allowed. */
export function isAllowed(host: string, rules: readonly string[]): boolean {
  return rules.some((rule) => {
    if (!rule.startsWith("*.")) return rule === host;
    return isIP(host) === 0 && host.endsWith(rule.slice(1)) && host.length > rule.length - 1;
  });
}

const MAX_CHARS = 1_000;
/** RFC 1035 §2.3.4, as text. */
const MAX_NAME_CHARS = 253;
/** Underscores are in no host name of the standards, and in some of the world. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const FORBIDDEN = /[\u0000-\u0020\u007f#%/:<>?@[\\\]^|]/;

function canonicalIpv6(text: string): string | undefined {
  // A zone names a link of this computer.
  if (isIP(text) !== 6 || text.includes("%")) return undefined;
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}
