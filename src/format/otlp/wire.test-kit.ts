/** Protobuf written by hand, for tests: also such as no library writes. */

export function varint(value: bigint | number): Buffer {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

export function tag(field: number, type: number): Buffer {
  return varint(BigInt(field) * 8n + BigInt(type));
}

/** A field with a payload: a text, bytes, or the fields of a message. */
export function len(field: number, ...payload: readonly (string | Uint8Array)[]): Buffer {
  const bytes = Buffer.concat(payload.map((part) => Buffer.from(part as Uint8Array)));
  return Buffer.concat([tag(field, 2), varint(bytes.length), bytes]);
}

export function int(field: number, value: bigint | number): Buffer {
  return Buffer.concat([tag(field, 0), varint(value)]);
}

export function fixed64(field: number, value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
  return Buffer.concat([tag(field, 1), bytes]);
}

export function double(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([tag(field, 1), bytes]);
}

export function fixed32(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return Buffer.concat([tag(field, 5), bytes]);
}

/** Values of OTLP. */
export const text = (value: string | Uint8Array): Buffer => len(1, value);
export const list = (...values: readonly Buffer[]): Buffer => len(5, ...values.map((value) => len(1, value)));
export const object = (...members: readonly Buffer[]): Buffer => len(6, ...members.map((member) => len(1, member)));
export const member = (key: string | Uint8Array, ...value: readonly Buffer[]): Buffer =>
  Buffer.concat([len(1, key), ...value.map((one) => len(2, one))]);

/** A request of one resource and one scope. */
export function request(...records: readonly Buffer[]): Buffer {
  return len(1, len(2, ...records.map((record) => len(2, record))));
}

/** Lists around a value, so many. */
export function nested(depth: number, value: Buffer = text("x")): Buffer {
  const heads: Buffer[] = [];
  let sizeBytes = value.length;
  const wrap = (field: number): void => {
    const head = Buffer.concat([tag(field, 2), varint(sizeBytes)]);
    heads.push(head);
    sizeBytes += head.length;
  };
  for (let i = 0; i < depth; i++) {
    wrap(1);
    wrap(5);
  }
  return Buffer.concat([...heads.toReversed(), value]);
}
