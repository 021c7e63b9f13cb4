import { lookup, Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { messageOf } from "../../../core/errors.ts";
import type { DialableAddresses } from "./addresses.ts";
import { EgressRefusal } from "../http/refusal.ts";

/** Turns names into addresses that may be dialled. Nothing inside a sandbox asks a name server itself. */
export class EgressResolver {
  readonly #addresses: DialableAddresses;
  readonly #resolver: Resolver | undefined;

  /** `servers`: addresses of name servers, with a port where it is not 53; none: those of this computer. */
  constructor(addresses: DialableAddresses, servers: readonly string[]) {
    this.#addresses = addresses;
    if (servers.length === 0) return;
    this.#resolver = new Resolver({ timeout: 2_000, tries: 2 });
    this.#resolver.setServers(servers.map((server) => (isIP(server) === 6 ? `[${server}]` : server)));
  }

  /**
   * The addresses of a canonical host, those first that the name servers put first, IPv4 before IPv6. One that may not
   * be dialled is left out; throws `EgressRefusal` when none is left.
   */
  async resolve(host: string): Promise<string[]> {
    const found = isIP(host) === 0 ? await this.#ask(host) : [host];
    const dialable = found.filter((address) => this.#addresses.has(address));
    if (dialable.length > 0) return dialable.slice(0, MOST_ADDRESSES);
    throw new EgressRefusal(403, `${host} leads to an address that sandboxes may not reach`);
  }

  async #ask(host: string): Promise<string[]> {
    const resolver = this.#resolver;
    try {
      if (resolver === undefined) {
        const found = await lookup(host, { all: true, order: "ipv4first" });
        return found.map(({ address }) => address);
      }
      const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
      if (found.length > 0) return found;
      const failed = answers.find((answer) => answer.status === "rejected");
      throw failed?.reason ?? new Error("it has no address");
    } catch (error) {
      throw new EgressRefusal(502, `${host} was not found: ${messageOf(error)}`);
    }
  }
}

/** Tried one after the other. */
const MOST_ADDRESSES = 4;
