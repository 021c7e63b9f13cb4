import type { ErrorCode } from "../../../core/errors.ts";
import { type Facts, factsOf } from "./facts.ts";

/** Which store is spoken to; what `ENGINE_OBJSTORE_*` say. */
export type StorePlace = {
  bucket: string;
  region: string;
  /** Undefined: the cloud's own. */
  endpoint: string | undefined;
  /** Undefined: the credentials come from the standard chain. */
  accessKeyId: string | undefined;
};

/** How one request ended, as the metrics count it. */
export type RequestOutcome =
  | "ok"
  | "not_found"
  /** An answer that the same request would get again. */
  | "refused"
  | "full"
  | "throttled"
  | "store_error"
  | "network"
  | "timeout"
  /** Bytes that are not those the store sent, or was sent. */
  | "damaged"
  | "aborted";

/** What a failed request means. */
export type Failure = {
  outcome: Exclude<RequestOutcome, "ok">;
  /** Whether the same request may well succeed later. */
  retry: boolean;
  /** In a few words that name no place: clients see it. */
  brief: string;
  /** One sentence for the operator: what is wrong, and where to set it right. */
  problem: string;
  /** Whether the operator's settings are what is wrong. */
  misconfigured: boolean;
  code: Extract<ErrorCode, "unavailable" | "insufficient_storage">;
};

type Verdict = Partial<Failure> & Pick<Failure, "problem" | "outcome">;

/** Reads an error of the SDK, of the network below it, or one of this driver's own. */
export function failureOf(error: unknown, place: StorePlace): Failure {
  const facts = factsOf(error);
  const verdict = verdictOf(facts, place);
  const retry = verdict.outcome !== "not_found" && verdict.outcome !== "refused" && verdict.outcome !== "full";
  return { retry, brief: briefOf(facts), misconfigured: false, code: "unavailable", ...verdict };
}

function verdictOf(facts: Facts, place: StorePlace): Verdict {
  // The SDK calls a reset connection a timeout, and an answer that was cut one that is not of S3; the system knows better.
  const system = facts.status === undefined || facts.unreadable ? SYSTEM[facts.systemCode ?? ""] : undefined;
  const judge = system ?? NAMED[facts.name];
  return judge?.(place, facts) ?? tlsVerdict(facts, place) ?? statusVerdict(facts, place);
}

/** What happened, in a few words that name no place. */
export function briefOf({ name, status, systemCode, message }: Facts): string {
  if (status === undefined) return systemCode ?? message;
  return name === "Error" ? `HTTP ${status}` : `${name}, HTTP ${status}`;
}

type FailureName =
  | "AttemptTimeout"
  | "Deadline"
  | "DamagedBody"
  | "UnusableAnswer"
  | "PlainHttp"
  | "NoSuchBucket"
  | "NoStore";

/** An error of this driver that knows what it means. */
export class RequestFailure extends Error {
  constructor(name: FailureName, message: string) {
    super(message);
    this.name = name;
  }
}

type Judge = (place: StorePlace, facts: Facts) => Verdict;

const operator = (problem: string): Verdict => ({ outcome: "refused", misconfigured: true, problem });

const unknownBucket: Judge = (place) =>
  operator(`the bucket ${place.bucket} does not exist ${at(place)}; make it, or correct ENGINE_OBJSTORE_BUCKET`);

const unknownKey: Judge = (place) =>
  operator(
    `${at(place)} no access key ${place.accessKeyId ?? "like that of the standard credential chain"} is known; ` +
      "correct ENGINE_OBJSTORE_ACCESS_KEY_ID",
  );

const staleToken: Judge = (place, { name }) =>
  operator(`the session token ${keySource(place)} is no longer valid (${name}); renew the credentials`);

const wrongSecret: Judge = (place) =>
  operator(
    `the secret key does not belong to the access key ${place.accessKeyId ?? "of the standard credential chain"}; ` +
      "correct ENGINE_OBJSTORE_SECRET_ACCESS_KEY",
  );

const wrongRegion: Judge = (place, { region }) =>
  operator(
    `the bucket ${place.bucket} ${at(place)} is ${region === undefined ? "not in the region" : `in the region ${region}, not in`} ` +
      `${place.region}; correct ENGINE_OBJSTORE_REGION`,
  );

const denied: Judge = (place, { message }) =>
  operator(`the credentials ${keySource(place)} have no permission for it in the bucket ${place.bucket} (${message})`);

const skewed: Judge = (place) => ({
  outcome: "refused",
  // The SDK learns the difference from the answer and signs the next request with it.
  retry: true,
  problem: `the clock of this machine and that of the store ${at(place)} are too far apart; set this machine's clock`,
});

const noStore: Judge = (place) =>
  operator(`what answers ${at(place)} is no S3 store; correct ENGINE_OBJSTORE_ENDPOINT`);

const throttled: Judge = (place, { name }) => ({
  outcome: "throttled",
  problem: `the store ${at(place)} asks for fewer requests (${name})`,
});

const full: Judge = (place, { name }) => ({
  outcome: "full",
  code: "insufficient_storage",
  problem: `the store ${at(place)} takes no more bytes (${name}): its disk is full or the quota is used up`,
});

const broken: Judge = (place, { name, message }) => ({
  outcome: "store_error",
  problem: `the store ${at(place)} had a failure of its own (${name}: ${message})`,
});

const damaged: Judge = (_place, { message }) => ({ outcome: "damaged", problem: message });

const notFound: Judge = (_place, { message }) => ({ outcome: "not_found", problem: message });

const timedOut: Judge = (place, { message }) => ({
  outcome: "timeout",
  problem: `the store ${at(place)} did not answer in time (${message})`,
});

/** By the error code of S3, or the name of an error of the SDK or this driver. */
const NAMED: Readonly<Record<string, Judge>> = {
  NoSuchBucket: unknownBucket,
  NoSuchKey: notFound,
  InvalidAccessKeyId: unknownKey,
  SignatureDoesNotMatch: wrongSecret,
  ExpiredToken: staleToken,
  ExpiredTokenException: staleToken,
  InvalidToken: staleToken,
  TokenRefreshRequired: staleToken,
  AuthorizationHeaderMalformed: (place, facts) =>
    facts.region === undefined && !/region/i.test(facts.message)
      ? wrongSecret(place, facts)
      : wrongRegion(place, facts),
  PermanentRedirect: wrongRegion,
  IllegalLocationConstraintException: wrongRegion,
  RequestTimeTooSkewed: skewed,
  RequestExpired: skewed,
  SlowDown: throttled,
  Throttling: throttled,
  ThrottlingException: throttled,
  RequestLimitExceeded: throttled,
  TooManyRequestsException: throttled,
  InternalError: broken,
  ServiceUnavailable: throttled,
  OperationAborted: broken,
  AccessDenied: denied,
  AllAccessDisabled: denied,
  AccountProblem: denied,
  QuotaExceeded: full,
  InsufficientStorage: full,
  InsufficientCapacity: full,
  XMinioStorageFull: full,
  XMinioAdminBucketQuotaExceeded: full,
  BadDigest: damaged,
  XAmzContentSHA256Mismatch: damaged,
  XAmzContentChecksumMismatch: damaged,
  IncompleteBody: damaged,
  DamagedBody: damaged,
  NoSuchUpload: (_place, { message }) => ({ outcome: "refused", problem: message }),
  RequestTimeout: timedOut,
  AttemptTimeout: timedOut,
  TimeoutError: timedOut,
  Deadline: (_place, { message }) => ({ outcome: "timeout", retry: false, problem: message }),
  UnusableAnswer: (place, { message }) => ({ outcome: "refused", problem: `the store ${at(place)} ${message}` }),
  NoStore: noStore,
  PlainHttp: (_place, { message }) => operator(message),
  CredentialsProviderError: (_place, { message }) =>
    operator(
      "no credentials were found: set ENGINE_OBJSTORE_ACCESS_KEY_ID and ENGINE_OBJSTORE_SECRET_ACCESS_KEY, or give " +
        `the standard credential chain something to find (${message})`,
    ),
};

const network =
  (what: (place: string) => string): Judge =>
  (place, { systemCode = "" }) => ({
    outcome: "network",
    problem: `${what(addressOf(place))} (${systemCode}); check ENGINE_OBJSTORE_ENDPOINT and the network`,
  });

/** By the code of a failed system call. */
const SYSTEM: Readonly<Record<string, Judge>> = {
  ECONNREFUSED: network((place) => `nothing listens at ${place}`),
  ENOTFOUND: network((place) => `the host of ${place} has no address`),
  EAI_AGAIN: network((place) => `the name service does not tell the address of ${place}`),
  EHOSTUNREACH: network((place) => `there is no way to the host of ${place}`),
  ENETUNREACH: network((place) => `there is no way to the network of ${place}`),
  ETIMEDOUT: network((place) => `no connection in time to ${place}`),
  ECONNRESET: network((place) => `the connection to ${place} was cut`),
  EPIPE: network((place) => `the connection to ${place} was cut`),
};

const TLS = /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO)/;

function tlsVerdict({ systemCode = "", message }: Facts, place: StorePlace): Verdict | undefined {
  const address = addressOf(place);
  if (systemCode.startsWith("HPE_")) {
    return operator(`what answers at ${address} does not speak HTTP (${systemCode}); correct ENGINE_OBJSTORE_ENDPOINT`);
  }
  if (!TLS.test(systemCode)) return undefined;
  const problem = message.includes("wrong version number")
    ? `what answers at ${address} does not speak TLS; give ENGINE_OBJSTORE_ENDPOINT an http address if that is meant`
    : `no secure connection to ${address}: ${message} (${systemCode}); check ENGINE_OBJSTORE_ENDPOINT, and name an ` +
      "authority of your own in NODE_EXTRA_CA_CERTS";
  return { ...operator(problem), outcome: "network", retry: false };
}

function statusVerdict(facts: Facts, place: StorePlace): Verdict {
  const { status, message } = facts;
  const answer = `the store ${at(place)} answered ${briefOf(facts)}: ${message}`;
  // No answer at all: the connection went away in some way that has no code.
  if (status === undefined) return { outcome: "network", problem: `no answer ${at(place)}: ${message}` };
  // A load balancer before the store has pages of its own for what passes.
  if (facts.unreadable && status < 500 && status !== 408 && status !== 429) return noStore(place, facts);
  if (status === 301 || status === 307) return wrongRegion(place, facts);
  if (status === 403) return denied(place, facts);
  if (status === 404) return { outcome: "not_found", problem: answer };
  if (status === 408) return { outcome: "timeout", problem: answer };
  if (status === 429 || status === 503) return { outcome: "throttled", problem: answer };
  if (status === 507) return full(place, facts);
  if (status >= 500 && status !== 501) return { outcome: "store_error", problem: answer };
  return { outcome: "refused", problem: answer };
}

function at(place: StorePlace): string {
  return `at ${addressOf(place)}`;
}

function addressOf({ endpoint, region }: StorePlace): string {
  return endpoint ?? `the cloud's endpoint for ${region}`;
}

function keySource({ accessKeyId }: StorePlace): string {
  return accessKeyId === undefined ? "of the standard chain" : `of the access key ${accessKeyId}`;
}
