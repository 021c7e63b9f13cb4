import type { Random } from "../../core/random.ts";
import { EXPORT_LOGS_REQUEST, type Field, type Message, type Scalar } from "./messages.ts";
import { double, fixed32, fixed64, int, len, tag, varint } from "./wire.test-kit.ts";

/**
 * Requests that are valid protobuf, by the table of messages: fields in any order, fields that come again, unknown ones
 * (groups too), known ones of another wire type, numbers at the ends of their ranges.
 */
export class RequestMaker {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  request(): Buffer {
    return this.#fields(EXPORT_LOGS_REQUEST, 0);
  }

  /** The same bytes with some changed, left out or put in. */
  damaged(bytes: Buffer): Buffer {
    const at = this.#below(bytes.length + 1);
    switch (this.#below(5)) {
      case 0:
        return bytes.subarray(0, at);
      case 1:
        return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + this.#below(4))]);
      case 2:
        return Buffer.concat([bytes.subarray(0, at), Buffer.from([this.#below(256)]), bytes.subarray(at)]);
      case 3: {
        const changed = Buffer.from(bytes);
        if (at < changed.length) changed[at] = (changed[at] ?? 0) ^ (1 << this.#below(8));
        return changed;
      }
      default:
        return Buffer.concat([bytes, Buffer.from(this.#random.fill(new Uint8Array(1 + this.#below(6))))]);
    }
  }

  #below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }

  #chance(probability: number): boolean {
    return this.#random.next() < probability;
  }

  #pick<T>(all: readonly T[]): T {
    return all[this.#below(all.length)] as T;
  }

  #fields(message: Message, depth: number): Buffer {
    const fields = [...message.byNumber.values()];
    const count = message.isChoice ? (this.#chance(0.9) ? 1 : this.#below(4)) : this.#below(fields.length + 3);
    const parts = Array.from({ length: count }, () => {
      if (this.#chance(0.06)) return this.#unknown(0);
      const field = this.#pick(fields);
      return this.#chance(0.03) ? this.#otherType(field) : this.#field(field, depth);
    });
    return Buffer.concat(parts);
  }

  #field({ number, type }: Field, depth: number): Buffer {
    if (typeof type === "string") return this.#scalar(number, type);
    return depth > 9 ? len(number) : len(number, this.#fields(type, depth + 1));
  }

  #scalar(field: number, type: Scalar): Buffer {
    const random64 = BigInt.asUintN(64, BigInt(Math.floor(this.#random.next() * 2 ** 53)) << BigInt(this.#below(12)));
    const integer = this.#pick([
      0n,
      1n,
      127n,
      128n,
      2n ** 31n,
      2n ** 32n - 1n,
      2n ** 63n - 1n,
      2n ** 63n,
      2n ** 64n - 1n,
      random64,
    ]);
    switch (type) {
      case "string":
        return len(field, this.#text());
      case "bytes":
      case "hex":
        return len(field, this.#random.fill(new Uint8Array(this.#pick([0, 1, 8, 16, 33]))));
      case "double":
        return double(
          field,
          this.#pick([0, -0, 1, -1.5, 0.1, 1e21, 5e-324, NaN, Infinity, -Infinity, this.#random.next()]),
        );
      case "fixed64":
        return fixed64(field, this.#chance(0.8) ? 1_767_323_045_000_000_000n + BigInt(this.#below(1e9)) : integer);
      case "fixed32":
        return fixed32(field, Number(BigInt.asUintN(32, integer)));
      case "bool":
      case "enum":
      case "int64":
      case "uint32":
        return int(field, integer);
    }
  }

  #text(): string {
    const known = [
      "",
      "a",
      "service.name",
      "service.name",
      "key",
      "INFO",
      'quote " slash \\ \u0000\u001f\n',
      "\u00fcn\u00efc\u00f6d\u00e9",
      "\u{1f989}",
    ];
    return this.#chance(0.05) ? "long ".repeat(this.#below(2_000)) : this.#pick(known);
  }

  #unknown(depth: number): Buffer {
    const field = this.#pick([13, 15, 16, 99, 2 ** 29 - 1]);
    switch (this.#below(depth > 3 ? 4 : 5)) {
      case 0:
        return int(field, this.#below(1e9));
      case 1:
        return fixed64(field, 7n);
      case 2:
        return fixed32(field, 7);
      case 3:
        return len(field, this.#random.fill(new Uint8Array(this.#below(20))));
      default: {
        const inside = Array.from({ length: this.#below(3) }, () => this.#unknown(depth + 1));
        return Buffer.concat([tag(field, 3), ...inside, tag(field, 4)]);
      }
    }
  }

  /** A known field with a value of another wire type, which is an unknown field. */
  #otherType({ number, type }: Field): Buffer {
    const isLength = typeof type !== "string" || type === "string" || type === "bytes" || type === "hex";
    if (isLength) return Buffer.concat([tag(number, 0), varint(this.#below(1_000))]);
    return len(number, "x");
  }
}
