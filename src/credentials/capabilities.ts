import { valuesOf } from "../config/option.ts";
import type { Capability } from "../feature/capability.ts";
import { CREDENTIALS_OPTIONS } from "./options.ts";

export const CREDENTIALS_CAPABILITIES: readonly Capability[] = [
  {
    name: "credentials",
    title: "Stored credentials",
    whyOff: async ({ config }) =>
      valuesOf(CREDENTIALS_OPTIONS, config).secretKey !== undefined
        ? undefined
        : "ENGINE_SECRET_KEY is not set: start the server with 32 random bytes in base64, as `openssl rand -base64 32` " +
          "prints them.",
  },
];
