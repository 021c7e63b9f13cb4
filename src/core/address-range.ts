import { isIP } from "node:net";

/** A range of IP addresses; a single address is one of its own. */
export type AddressRange = { address: string; prefixBits: number; family: "ipv4" | "ipv6" };

/** Reads `10.0.0.0/8` or `10.0.0.1` (RFC 4632 §3.1); undefined for what is neither. A zone names a link, no range. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0 || address.includes("%")) return undefined;
  const width = version === 4 ? 32 : 128;
  const prefixBits = bits === undefined ? width : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  return prefixBits <= width ? { address, prefixBits, family: version === 4 ? "ipv4" : "ipv6" } : undefined;
}
