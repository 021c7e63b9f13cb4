import { BlockList, isIP } from "node:net";
import { listOf } from "./kinds.ts";

/** The kinds of options about who reaches a server, and by which name. */

const HOST_NAME = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i;
const HOST_NAME_CHARS = 253;

/** Names of hosts, folded; without a port, since a name is a server's whatever its port. */
export const hostNames = listOf({
  item: (text) => (text.length <= HOST_NAME_CHARS && HOST_NAME.test(text) ? text.toLowerCase() : undefined),
  accepts: "host names separated by commas (engine.example.com), without port",
  label: "list of host names",
});

/** Addresses and networks, as `addressSet` takes them. */
export const networks = listOf({
  item: (text) => (networkIn(text) === undefined ? undefined : text),
  accepts: "IP addresses and networks separated by commas (10.0.0.0/8, fd00::/8, 192.0.2.7)",
  label: "list of networks",
});

type Network = { address: string; prefixBits: number; family: "ipv4" | "ipv6" };

function networkIn(text: string): Network | undefined {
  const [, address = "", prefix] = /^([0-9a-f:.]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return undefined;
  const [family, allBits] = version === 4 ? (["ipv4", 32] as const) : (["ipv6", 128] as const);
  const prefixBits = prefix === undefined ? allBits : Number(prefix);
  return prefixBits <= allBits ? { address, prefixBits, family } : undefined;
}

/** Tells whether an address is in one of the networks; text that is no address is in none. */
export function addressSet(texts: readonly string[]): (address: string) => boolean {
  if (texts.length === 0) return () => false;
  const list = new BlockList();
  for (const text of texts) {
    const network = networkIn(text);
    if (network === undefined) throw new Error(`${text} is no network`);
    list.addSubnet(network.address, network.prefixBits, network.family);
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 4 ? "ipv4" : "ipv6");
  };
}
