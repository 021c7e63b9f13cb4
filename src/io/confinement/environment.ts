import { isolateEnv } from "../../core/isolate.ts";

/** The environment in which a query process starts, confined or not: nothing in it makes it open files of its own. */
export function processEnv(): Record<string, string | undefined> {
  // Options of Perl would have the launcher load modules, or read its arguments as another encoding.
  const inherited = Object.entries(isolateEnv()).filter(([name]) => !name.startsWith("PERL"));
  return {
    ...Object.fromEntries(inherited),
    PERL_BADLANG: "0",
    NODE_OPTIONS: "",
    // Node refuses to start when it may not read the default file.
    OPENSSL_CONF: "/dev/null",
  };
}
