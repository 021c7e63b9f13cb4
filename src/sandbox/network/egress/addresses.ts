import { BlockList, isIP } from "node:net";
import { parseAddressRange } from "../../../core/address-range.ts";

/**
 * Addresses that no sandbox reaches, whatever name leads to them: this computer, private and link-local networks (the
 * metadata services of clouds among them), and everything else that the IANA special-purpose registries (RFC 6890 and
 * its updates) do not call globally reachable.
 */
const RESERVED: readonly string[] = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  // The address that some clouds answer metadata at, outside the ranges above.
  "168.63.129.16/32",
];

/** Of IPv6 only what is handed out as global unicast is reached, less what is special in it. */
const GLOBAL_UNICAST = "2000::/3";
const RESERVED_GLOBAL: readonly string[] = [
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
];

const reserved = listOf(RESERVED);
const globalUnicast = listOf([GLOBAL_UNICAST]);
const reservedGlobal = listOf(RESERVED_GLOBAL);

/** Which addresses may be dialled: the public ones, and the ranges that the operator added. */
export class DialableAddresses {
  readonly #added: BlockList;

  /** `ranges` in CIDR notation, or single addresses; throws for what is neither. */
  constructor(ranges: readonly string[]) {
    this.#added = listOf(ranges);
  }

  has(address: string): boolean {
    const family = isIP(address);
    if (family === 0 || address.includes("%")) return false;
    // An IPv4 address in IPv6 clothes reaches what the IPv4 address reaches.
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
    if (mapped !== undefined) return this.has(mapped);
    if (family === 4) return this.#added.check(address, "ipv4") || !reserved.check(address, "ipv4");
    if (this.#added.check(address, "ipv6")) return true;
    return globalUnicast.check(address, "ipv6") && !reservedGlobal.check(address, "ipv6");
  }
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of ranges) {
    const range = parseAddressRange(text);
    if (range === undefined) {
      throw new RangeError(`${JSON.stringify(text)} is no range of addresses; one looks like 10.0.0.0/8`);
    }
    list.addSubnet(range.address, range.prefixBits, range.family);
  }
  return list;
}
