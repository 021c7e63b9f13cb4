import { z } from "zod";
import { anyJson } from "../../server/schemas.ts";
import { MEMORY_LIMITS } from "./limits.ts";
import { imitatesPrivate } from "./realms.ts";
import { maskSecrets, maskSecretsIn } from "./secrets.ts";
import { textToUs } from "./times.ts";

/** The fields of records as they may come from outside: each is bounded, and what it says is free of secrets then. */

/** Words of our own and of callers, on one line. */
function line(maxChars: number) {
  return z
    .string()
    .max(maxChars)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), "accepted is text without control characters")
    .transform((text) => text.trim())
    .refine((text) => text !== "", "is empty");
}

function maskedLine(maxChars: number) {
  return line(maxChars)
    .transform(maskSecrets)
    .refine((text) => text.length <= maxChars, MASKED_LONGER);
}

/** A mask may be longer than what it hides. What is stored must pass here again, on a replica. */
const MASKED_LONGER = "is too long once the secrets in it are masked";

const content = z
  .string()
  .refine((text) => text.isWellFormed() && !text.includes("\0"), "accepted is Unicode text without NUL")
  .refine((text) => text.trim() !== "", "is empty")
  .refine((text) => Buffer.byteLength(text) <= MEMORY_LIMITS.contentBytes, {
    error: `is longer than ${MEMORY_LIMITS.contentBytes} bytes: save the parts that matter on their own`,
  })
  .transform((text) => maskSecrets(text.trim()))
  .refine((text) => Buffer.byteLength(text) <= MEMORY_LIMITS.contentBytes, MASKED_LONGER);

const realm = line(MEMORY_LIMITS.realmChars)
  .transform((text) => text.normalize("NFC"))
  .refine((text) => !imitatesPrivate(text), "a realm of one user is written user:<name>");

/** Readers of JSON round the others, and would store another number than was written. */
const KEPT_NUMBERS =
  `accepted are numbers up to ${Number.MAX_VALUE}, ` +
  `and whole numbers up to ${Number.MAX_SAFE_INTEGER}: write larger ones as text`;

const props = z
  .record(z.string(), anyJson)
  .refine(hasKeptNumbers, { error: KEPT_NUMBERS, abort: true })
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= MEMORY_LIMITS.propsBytes, {
    error: `is longer than ${MEMORY_LIMITS.propsBytes} bytes of JSON`,
  })
  .transform((value) => maskSecretsIn(value) as Record<string, unknown>)
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= MEMORY_LIMITS.propsBytes, MASKED_LONGER);

/** From 1e21 on, whole numbers are written with an exponent: whoever does so expects them to be rounded. */
function hasKeptNumbers(value: unknown): boolean {
  if (typeof value === "number") {
    return (
      Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21)
    );
  }
  return typeof value !== "object" || value === null || Object.values(value).every(hasKeptNumbers);
}

const tags = z
  .array(maskedLine(MEMORY_LIMITS.tagChars))
  .max(MEMORY_LIMITS.tags)
  .transform((list) => [...new Set(list)]);

const time = z.string().transform((text, context) => {
  const us = textToUs(text);
  if (us !== undefined) return us;
  context.addIssue({ code: "custom", message: "accepted is an RFC 3339 time with an offset" });
  return z.NEVER;
});

const word = z
  .string()
  .max(MEMORY_LIMITS.typeChars)
  .regex(/^[a-z][a-z0-9_-]*$/, "accepted are lower-case letters, digits, _ and -, a letter first");

export const FIELDS = {
  id: z
    .string()
    .max(MEMORY_LIMITS.idChars)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, "accepted are letters, digits and . _ : -"),
  realm,
  word,
  name: maskedLine(MEMORY_LIMITS.nameChars),
  content,
  tags,
  importance: z.number().min(0).max(1),
  topicKey: maskedLine(MEMORY_LIMITS.topicKeyChars).transform((text) => text.normalize("NFC")),
  props,
  source: maskedLine(MEMORY_LIMITS.sourceChars),
  reason: maskedLine(MEMORY_LIMITS.reasonChars),
  rel: word,
  weight: z.number().min(0).max(MEMORY_LIMITS.maxWeight),
  version: z.int().min(0),
  time,
} as const;
