import { EngineError } from "../../core/errors.ts";
import { GRPC_STATUS, sentMessage, sentMetadata, type GrpcStatus } from "../../io/grpc/status.ts";

/**
 * The frames of gRPC-web (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md): a byte of flags, the length, the
 * message. The last frame of an answer has the flag 0x80 and the trailers, as lines of HTTP/1. The text form is base64,
 * which may be padded in its middle.
 */
const PREFIX_BYTES = 5;
const COMPRESSED = 0x01;
const TRAILERS = 0x80;

/** The one message of a request's body. Throws `bad_request_body`. */
export function requestMessage(body: Uint8Array, isText: boolean): Uint8Array {
  const bytes = isText ? fromBase64(body) : body;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < PREFIX_BYTES) throw refused("its body has no message");
  const flags = view.getUint8(0);
  if (flags === COMPRESSED) throw refused("compressed messages are not taken");
  if (flags !== 0) throw refused("its body does not begin with a message");
  if (view.getUint32(1) !== bytes.byteLength - PREFIX_BYTES) throw refused("its body is not one message");
  return bytes.subarray(PREFIX_BYTES);
}

/** A message of an answer, as the pieces that are sent. */
export function messageFrame(message: Uint8Array, isText: boolean): Uint8Array[] {
  return sent([prefixOf(0, message.byteLength), message], isText);
}

/** What ends an answer. */
export function trailerFrame(status: GrpcStatus | undefined, isText: boolean): Uint8Array[] {
  const lines = Object.entries(trailersOf(status)).map(([name, value]) => `${name}: ${value}\r\n`);
  const trailers = Buffer.from(lines.join(""), "latin1");
  return sent([prefixOf(TRAILERS, trailers.byteLength), trailers], isText);
}

function trailersOf(failure: GrpcStatus | undefined): Record<string, string> {
  if (failure === undefined) return { "grpc-status": String(GRPC_STATUS.OK) };
  const { status, message, metadata, details } = failure;
  return {
    ...Object.fromEntries(sentMetadata(metadata)),
    "grpc-status": String(GRPC_STATUS[status]),
    "grpc-message": encodeURIComponent(sentMessage(message)),
    ...(details === undefined ? {} : { "grpc-status-details-bin": Buffer.from(details).toString("base64") }),
  };
}

function prefixOf(flags: number, sizeBytes: number): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(flags, 0);
  prefix.writeUInt32BE(sizeBytes, 1);
  return prefix;
}

function sent(pieces: readonly Uint8Array[], isText: boolean): Uint8Array[] {
  return isText ? [Buffer.from(Buffer.concat(pieces).toString("base64"), "latin1")] : [...pieces];
}

/** Each is looked at alone, so that no text takes longer than its length. */
const BASE64_PART = /^[A-Za-z0-9+/]+={0,2}$/;

function fromBase64(body: Uint8Array): Uint8Array {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  const parts = text.match(/[^=]+={0,2}/g) ?? [];
  const matched = parts.reduce((sum, part) => sum + part.length, 0);
  const isBase64 = matched === text.length && parts.every((part) => part.length % 4 === 0 && BASE64_PART.test(part));
  if (!isBase64) throw refused("its body is not base64");
  return Buffer.concat(parts.map((part) => Buffer.from(part, "base64")));
}

function refused(why: string): EngineError {
  return new EngineError("bad_request_body", `the request is not one of gRPC-web: ${why}`);
}
