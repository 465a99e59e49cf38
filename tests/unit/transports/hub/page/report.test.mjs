// A report answers what the page asks for, from its own log.

import assert from "node:assert/strict";
import {test} from "node:test";
import {gzipSync} from "node:zlib";

import {answer, isReport, open, use} from "../../../../../src/coord/transports/hub/page/static/core/report.js";
import {request} from "../../../../../src/coord/transports/hub/page/static/core/api.js";

const RULES = {"x.put": [{op: "put", table: "locks", key: ["id"], fields: {id: "id"}}]};
const entries = Array.from({length: 5000}, (_, number) =>
  ({offset: 11 + number, at: 1000 + number, events: [{event: "x.put", id: `l${number}`}]}));
const REPORT = {base: {offset: 10, at: 900, tables: {}, recent: {}}, entries, rules: RULES, hub: {repository: "shop"}};

test("a page without a report belongs to a hub", async () => {
  await open("");
  assert.equal(isReport(), false);
});

test("a report is unpacked from its text", async () => {
  await open(gzipSync(JSON.stringify(REPORT)).toString("base64"));
  assert.equal(isReport(), true);
  assert.equal(answer("/v1/page").hub.repository, "shop");
});

test("a report has the state at every offset and time", () => {
  use(REPORT);
  const sizeAt = (query) => Object.keys(answer(`/v1/page${query}`).tables.locks).length;
  assert.deepEqual([sizeAt(""), sizeAt("?at=10"), sizeAt("?at=11"), sizeAt("?at=2010"), sizeAt("?at=2011"), sizeAt("?at=99999")], [5000, 0, 1, 2000, 2001, 5000]);
  assert.deepEqual([sizeAt("?time=999"), sizeAt("?time=1000"), sizeAt("?time=3500")], [0, 1, 2501]);
  assert.deepEqual([answer("/v1/page").first_offset, answer("/v1/page").who.role], [10, "view"]);
});

test("a report has its events in pages", () => {
  const first = answer("/v1/events?after=10&limit=2");
  assert.deepEqual(first, {after: 12, events: [{offset: 11, at_ms: 1000, event: "x.put", details: {id: "l0"}}, {offset: 12, at_ms: 1001, event: "x.put", details: {id: "l1"}}]});
  assert.deepEqual(answer("/v1/events?after=5010&limit=2"), {after: 5010, events: []});
});

test("what needs a hub is refused without a request", async () => {
  const fetcher = () => assert.fail("a report asks nobody");
  await assert.rejects(request("/v1/locks", {fetcher}), /a report does not have this/);
  await assert.rejects(request("/v1/page", {method: "POST", fetcher}), /a report does not have this/);
  assert.equal((await request("/v1/page", {fetcher})).offset, 5010);
});
