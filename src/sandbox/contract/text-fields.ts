import { z } from "zod";

/** Fields of requests that many parts of the sandbox service have. */

/** Names of environment variables. */
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;

/** Text that databases, logs and programs can hold. */
export const text = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .refine((value) => value.isWellFormed() && !value.includes("\0"), "accepted is text without NUL characters");

/** Text of one line, at least a character. */
export const line = (maxChars: number) =>
  z
    .string()
    .min(1)
    .max(maxChars)
    .refine((value) => value.isWellFormed() && !/\p{Cc}/u.test(value), "accepted is text without control characters");
