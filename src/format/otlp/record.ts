import { tagOf, WIRE, type WireReader } from "../protobuf/wire.ts";
import type { ValueJson } from "./value-json.ts";

/**
 * A `LogRecord` (opentelemetry/proto/logs/v1/logs.proto) as it was last read: numbers, and ranges of the source. A number
 * that is 0, and a range that is empty, are for protobuf as if they were not there. Its attributes are the pending members
 * of the `ValueJson` that it was read with.
 */
export class LogRecord {
  /** Times in nanoseconds since 1970, 64 bits without a sign. */
  timeLow = 0;
  timeHigh = 0;
  observedLow = 0;
  observedHigh = 0;
  severityNumber = 0;
  severityStart = 0;
  severityEnd = 0;
  eventStart = 0;
  eventEnd = 0;
  /** Where the body is; -1 without one. */
  bodyStart = -1;
  bodyEnd = -1;
  /** 32 bits without a sign. */
  flags = 0;
  droppedAttributes = 0;
  traceStart = 0;
  traceEnd = 0;
  spanStart = 0;
  spanEnd = 0;

  /** Reads the record at `[start, end)`. */
  read(wire: WireReader, values: ValueJson, start: number, end: number): void {
    this.#clear();
    wire.enter(start, end);
    while (wire.next()) {
      switch (wire.tag) {
        case TIME:
          this.timeLow = wire.low;
          this.timeHigh = wire.high;
          break;
        case OBSERVED_TIME:
          this.observedLow = wire.low;
          this.observedHigh = wire.high;
          break;
        case SEVERITY_NUMBER:
          this.severityNumber = wire.low;
          break;
        case SEVERITY_TEXT:
          this.severityStart = wire.start;
          this.severityEnd = wire.stop;
          break;
        case BODY:
          if (this.bodyStart >= 0) values.repeated = true;
          this.bodyStart = wire.start;
          this.bodyEnd = wire.stop;
          break;
        case ATTRIBUTES:
          values.addMember(wire.start, wire.stop);
          break;
        case DROPPED_ATTRIBUTES:
          this.droppedAttributes = wire.low >>> 0;
          break;
        case FLAGS:
          this.flags = wire.low >>> 0;
          break;
        case TRACE_ID:
          this.traceStart = wire.start;
          this.traceEnd = wire.stop;
          break;
        case SPAN_ID:
          this.spanStart = wire.start;
          this.spanEnd = wire.stop;
          break;
        case EVENT_NAME:
          this.eventStart = wire.start;
          this.eventEnd = wire.stop;
          break;
        default:
        // A field that is not known here is skipped.
      }
    }
  }

  #clear(): void {
    this.timeLow = this.timeHigh = this.observedLow = this.observedHigh = 0;
    this.severityNumber = this.flags = this.droppedAttributes = 0;
    this.severityStart = this.severityEnd = this.eventStart = this.eventEnd = 0;
    this.traceStart = this.traceEnd = this.spanStart = this.spanEnd = 0;
    this.bodyStart = this.bodyEnd = -1;
  }
}

const TIME = tagOf(1, WIRE.fixed64);
const SEVERITY_NUMBER = tagOf(2, WIRE.varint);
const SEVERITY_TEXT = tagOf(3, WIRE.length);
const BODY = tagOf(5, WIRE.length);
const ATTRIBUTES = tagOf(6, WIRE.length);
const DROPPED_ATTRIBUTES = tagOf(7, WIRE.varint);
const FLAGS = tagOf(8, WIRE.fixed32);
const TRACE_ID = tagOf(9, WIRE.length);
const SPAN_ID = tagOf(10, WIRE.length);
const OBSERVED_TIME = tagOf(11, WIRE.fixed64);
const EVENT_NAME = tagOf(12, WIRE.length);
