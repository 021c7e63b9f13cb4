import { messageOf } from "../../../core/errors.ts";

/** What an error of the SDK or of the network says, as far as it says anything. */
export type Facts = {
  /** The error code of S3, else the name of the error. */
  name: string;
  message: string;
  /** HTTP status of the answer; undefined when there was none. */
  status: number | undefined;
  /** Code of the failed system call, from the innermost error that has one. */
  systemCode: string | undefined;
  /** Region of the bucket, where the store tells it. */
  region: string | undefined;
  /** The answer was not of the form that S3 stores answer in. */
  unreadable: boolean;
};

export function factsOf(error: unknown): Facts {
  const response = fieldOf(error, "$response");
  const headers = fieldOf(response, "headers");
  const status =
    numberOf(fieldOf(fieldOf(error, "$metadata"), "httpStatusCode")) ?? numberOf(fieldOf(response, "statusCode"));
  const name = textOf(fieldOf(error, "name")) ?? "Error";
  const message = messageOf(error);
  return {
    name: name === "Error" && message.startsWith("Checksum mismatch") ? "DamagedBody" : name,
    // Some messages of the TLS library have lines.
    message: message.replace(/\s+/g, " ").trim() || name,
    status,
    systemCode: systemCodeIn(error),
    region: textOf(fieldOf(error, "Region")) ?? textOf(fieldOf(headers, "x-amz-bucket-region")),
    unreadable: status !== undefined && (UNPARSED.test(message) || isPage(fieldOf(headers, "content-type"))),
  };
}

/** What the SDK says of an answer that it could not parse. */
const UNPARSED = /Deserialization error|is not expected|Unexpected token/;

function isPage(contentType: unknown): boolean {
  return textOf(contentType)?.startsWith("text/html") === true;
}

function systemCodeIn(error: unknown): string | undefined {
  let found: string | undefined;
  for (let at = error, depth = 0; at !== undefined && depth < 5; at = fieldOf(at, "cause"), depth++) {
    found = textOf(fieldOf(at, "code")) ?? found;
  }
  return found;
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? (Reflect.get(value, field) as unknown) : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
