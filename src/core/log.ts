import { pino, stdSerializers, type DestinationStream, type Logger } from "pino";

export type Log = Logger;

/** One JSON object per line on standard error, so that standard output stays for results. */
export function createLog(level: string, destination?: DestinationStream): Log {
  return pino(
    { level, base: null, serializers: { err: stdSerializers.err }, timestamp: pino.stdTimeFunctions.isoTime },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
}

/** A log that drops everything, for tests. */
export const silentLog: Log = pino({ level: "silent" });
