import { RequestFailure } from "./failure.ts";

type Next<Args, Output> = (args: Args) => Promise<Output>;

/**
 * A step for the SDK's clients that sends nothing without TLS. It looks at each request, because profile files and
 * variables of the SDK may name an endpoint too.
 */
export function refusePlainHttp(service: string) {
  return <Args extends object, Output>(next: Next<Args, Output>): Next<Args, Output> =>
    (args) => {
      const request: unknown = Reflect.get(args, "request");
      const protocol: unknown =
        typeof request === "object" && request !== null ? Reflect.get(request, "protocol") : undefined;
      if (protocol === "https:") return next(args);
      throw new RequestFailure(
        "PlainHttp",
        `the endpoint of the ${service} is plain HTTP, which ENGINE_OBJSTORE_ALLOW_HTTP=false forbids; give an https endpoint`,
      );
    };
}

/** Where it stands: before anything is signed or sent. */
export const BEFORE_SIGNING = { step: "build", priority: "low", name: "refusePlainHttp" } as const;
