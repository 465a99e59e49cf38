"""The keys of the Redis store, and its Lua scripts; each script is one atomic step.

All keys of a store share one hash tag, so they lie in one slot of a Redis Cluster. `{prefix}:meta` is
the metadata of the store, `{prefix}:tenants` the tenants with a log. Below `{prefix}:<tenant>:` a tenant has

    head       hash    head, at, floor; the totals of what the other keys hold; a seal over all of these
    record     hash    key -> 16 digits of the version, 16 of the checksum; then, of a live one, its index
                       key, a NUL, its value
    key        zset    the live keys, in the order of bytes (every score is 0)
    index      zset    index keys: the index key, a NUL, the key
    dead       zset    the keys of tombstones, scored by version
    entry      stream  the log: the id of an entry is its offset; its last field is its checksum

Every script compares the totals with the lengths that the server knows, so a record, an index key or an entry
that another program added or removed is noticed by whoever comes next (decision 0057).

Numbers of Lua are doubles: offsets stay below 2^53, and are written with %.0f, never with tostring. A script
that fails half way is not rolled back, so whatever can fail comes before the first write. Lists come and go
as one text with a list of sizes: a thousand small arguments would cost more than everything else. Lua hashes
every byte of each string that it creates, so the scripts create few long strings.

No script is declared free of writes: a replica, which may be behind, refuses to run such a one.
"""

import hashlib
from typing import Final

PARTS: Final = ("head", "record", "key", "index", "dead", "entry")
COMMANDS: Final = (
    "hget hmget hgetall hset hdel hlen zadd zrem zcard zmscore zrange zrangebylex zrangebyscore "
    "sadd sismember smembers xadd xlen xrange xtrim time"
)
"""What the scripts call."""
TERM: Final = "COORDTERM"
"""The error of a script that is called in another epoch, or after a restart of the server."""

DAMAGE: Final = "COORDDAMAGE"
"""The error of a script that finds damaged data; what follows names it."""

EPOCH_UNIT: Final = "1099511627776"
"""2^40: see database.py."""
EPOCHS: Final = "8191"
SINCE: Final = "1577836800000"
"""2020 began. A raised epoch starts at the milliseconds since then: an earlier raise may be lost itself."""

_LISTS: Final = """
local AT_ONCE = 4000  -- Lua's stack holds 8000 values
local function each_portion(list, act)
    for first = 1, #list, AT_ONCE do
        act(unpack(list, first, math.min(first + AT_ONCE - 1, #list)))
    end
end
local function call(command, key, list)  -- it returns how many were added or removed
    local sum = 0
    each_portion(list, function(...) sum = sum + redis.call(command, key, ...) end)
    return sum
end
local function records_of(keys)
    if #keys <= AT_ONCE then return #keys > 0 and redis.call('HMGET', KEYS[4], unpack(keys)) or {} end
    local found = {}
    each_portion(keys, function(...)
        for _, record in ipairs(redis.call('HMGET', KEYS[4], ...)) do found[#found + 1] = record end
    end)
    return found
end
local function whole(number) return string.format('%.0f', number) end
local function clock()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""

# The totals of a log: how many rows and entries there are, and the sum of the digests of its records.
_TOTALS: Final = (
    _LISTS
    + """
local HEADER = 32  -- 16 digits of the version, 16 of the checksum: the digest plus the version
local DIGESTS = 281474976710656
local COUNTED = {'records', 'keys', 'index keys', 'tombstones', 'entries'}
local function damage(text)
    local tenant = string.match(KEYS[3], '}:(.*):head$') or KEYS[3]
    return redis.error_reply('COORDDAMAGE tenant ' .. tenant .. ' in Redis ' .. text)
end
local function counts()  -- a key of another type has an error in place of its length
    return {redis.pcall('HLEN', KEYS[4]), redis.pcall('ZCARD', KEYS[5]), redis.pcall('ZCARD', KEYS[6]),
        redis.pcall('ZCARD', KEYS[7]), redis.pcall('XLEN', KEYS[8])}
end
local function seal_of(place) return redis.sha1hex(KEYS[3] .. ' ' .. table.concat(place, ' ', 1, 9)) end
local function keep(head, at, floor, digest, now)
    local place = {whole(head), at, whole(floor), whole(digest % DIGESTS)}
    for each, count in ipairs(now) do place[4 + each] = count end  -- below 10^14, so Lua writes all digits
    redis.call('HSET', KEYS[3], 'head', place[1], 'at', at, 'floor', place[3], 'digest', place[4],
        'records', place[5], 'keys', place[6], 'indexed', place[7], 'dead', place[8], 'entries', place[9],
        'seal', seal_of(place))
end
local function digest_of(record)  -- nil if it is none of ours
    local version, checksum = tonumber(string.sub(record, 1, 16)), tonumber(string.sub(record, 17, HEADER))
    return version and checksum and checksum - version
end
-- Look at every record: return the sum of digests, or what is wrong.
local function survey()
    local sum = 0
    for part = 5, 7, 2 do
        for first = 0, redis.call('ZCARD', KEYS[part]) - 1, AT_ONCE do
            local keys, places = redis.call('ZRANGE', KEYS[part], first, first + AT_ONCE - 1), {}
            for each, record in ipairs(records_of(keys)) do
                local digest = record and digest_of(record)
                if not record then return nil, 'has lost the record "' .. keys[each] .. '"' end
                if not digest or (part == 5) ~= (#record > HEADER) then
                    return nil, 'has a damaged record "' .. keys[each] .. '"'
                end
                sum = sum + digest
                if part == 5 and string.byte(record, HEADER + 1) ~= 0 then
                    local name_ends = string.find(record, '\\0', HEADER + 1, true) or #record
                    places[#places + 1] = string.sub(record, HEADER + 1, name_ends) .. keys[each]
                end
            end
            if #places > 0 then
                for each, score in ipairs(redis.call('ZMSCORE', KEYS[6], unpack(places))) do
                    if not score then
                        local key = string.match(places[each], '%z(.*)')
                        return nil, 'has lost the index key of "' .. key .. '"'
                    end
                end
            end
        end
    end
    return sum % DIGESTS
end
"""
)

_HEAD: Final = (
    _TOTALS
    + """
local meta = redis.call('HMGET', KEYS[1], 'run', 'epoch', 'base', 'migrated_message')
if meta[1] ~= ARGV[1] or meta[2] ~= ARGV[2] then
    return redis.error_reply('COORDTERM the server was restarted, or another one took over')
end
local base = tonumber(meta[3])
local place = redis.call('HMGET', KEYS[3], 'head', 'at', 'floor', 'digest', 'records', 'keys', 'indexed',
    'dead', 'entries', 'seal')
local found = counts()
for each, count in ipairs(found) do
    if type(count) == 'table' then return damage('has something else at ' .. KEYS[3 + each]) end
end
for each, count in ipairs(found) do
    if count ~= tonumber(place[4 + each] or 0) then
        local _, what = survey()  -- it may know more
        local counted = COUNTED[each] .. '; its log counted ' .. (place[4 + each] or '0')
        return damage('has ' .. whole(count) .. ' ' .. counted .. (what and ': it ' .. what or ''))
    end
end
if place[10] then
    for each = 1, 9 do place[each] = place[each] or '' end
    if seal_of(place) ~= place[10] then return damage('has a head that does not match its checksum') end
elseif place[1] or redis.call('SISMEMBER', KEYS[2], string.match(KEYS[3], '}:(.*):head$')) == 1 then
    return damage('has lost its head')
end
local begins = math.max(base, meta[2] * EPOCH_UNIT)  -- where a log begins that has no entry yet
local head = math.max(tonumber(place[1] or begins), base)
local floor = tonumber(place[3] or begins)
-- What is absent has the version of the floor or of the epoch: a deletion may have been lost before it.
local absent = math.max(floor, base)
local function answer(texts)
    local sizes = {}
    for each, text in ipairs(texts) do
        if text then sizes[each] = #text else sizes[each] = -1; texts[each] = '' end
    end
    return {clock(), head, place[2] or '0', floor, absent, cmsgpack.pack(sizes), table.concat(texts)}
end
"""
)

VERIFY: Final = (
    _HEAD
    + """
-- Are these the records that the log has written? It takes long where there are many.
if tonumber(place[5] or 0) <= tonumber(ARGV[4]) then
    local sum, what = survey()
    if not sum then return damage(what) end
    if sum ~= tonumber(place[4] or 0) then
        return damage('has records that its log did not write, or older ones')
    end
end
return answer({})
"""
)

LOAD: Final = (
    _HEAD
    + """
-- The records of keys; then of each range how many there are, and their keys and records.
local function key_in(name) return string.sub(name, string.find(name, '\\0', 1, true) + 1) end
local keys = cmsgpack.unpack(ARGV[4])
local texts, count = records_of(keys), #keys
for at = 5, #ARGV, 4 do
    local by_index_key = ARGV[at] == 'index_key'
    local bounds = {ARGV[at + 1], ARGV[at + 2], 'LIMIT', 0, ARGV[at + 3]}
    local names = redis.call('ZRANGEBYLEX', KEYS[by_index_key and 6 or 5], unpack(bounds))
    if by_index_key then
        for each, name in ipairs(names) do names[each] = key_in(name) end
    end
    count = count + 1
    texts[count] = whole(#names)
    for each, record in ipairs(records_of(names)) do
        texts[count + 1], texts[count + 2] = names[each], record
        count = count + 2
    end
end
return answer(texts)
"""
)

TAIL: Final = (
    _HEAD
    + """
local texts = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[8], ARGV[4], '+', 'COUNT', ARGV[5])) do
    texts[#texts + 1] = string.match(entry[1], '^%d+')
    for _, named in ipairs({8, 2, 4, 6}) do texts[#texts + 1] = entry[2][named] or false end
end
return answer(texts)
"""
)

COMMIT: Final = (
    _HEAD
    + """
-- The contract of one commit, and nothing of the product. `keys` are those to put, then those to delete;
-- `sizes` and `index_sizes` count the bytes of the records to put, and of their index keys; `tombstones` are
-- the digests of those to delete.
local keys, versions, sizes, index_sizes, tombstones, entry_digest = unpack(cmsgpack.unpack(ARGV[4]))
local values, commit_at, commit_id, events, writes = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10] == '1'
local seen = tonumber(ARGV[12])
if head < seen then
    return redis.error_reply('COORDTERM the log went back: the server was a replica in between')
end
local records, changed = records_of(keys), {}
local function compare(names, found, expected)
    for each, record in ipairs(found) do
        local version = record and tonumber(string.sub(record, 1, 16)) or absent
        if record and #record == HEADER and version then version = math.max(version, absent) end
        if version ~= expected[each] then changed[#changed + 1] = names[each] end
    end
end
-- At the read point, no expected version can have changed.
if ARGV[13] ~= whole(head) .. ' ' .. whole(floor) .. ' ' .. ARGV[3] then
    local read, read_versions = unpack(cmsgpack.unpack(ARGV[5]))
    compare(keys, records, versions)
    compare(read, records_of(read), read_versions)
end
if #changed > 0 then return {clock(), -1, changed} end
if not writes then return {clock(), head, place[2] or '0'} end
if meta[4] then return redis.error_reply('COORD ' .. meta[4]) end
local offset = head + 1
local digest = tonumber(place[4] or 0)
for each, record in ipairs(records) do
    local old = record and digest_of(record)
    if record and not old then return damage('has a damaged record "' .. keys[each] .. '"') end
    digest = digest - (old or 0)
end
local function marked(its_digest) return string.format('%016.0f%016.0f', offset, offset + its_digest) end
-- The first write: it alone can fail, where the log has an entry that its head does not know.
redis.call('XADD', KEYS[8], whole(offset) .. '-0', 'at', commit_at, 'id', commit_id, 'events', events,
    'checksum', whole(offset + entry_digest))
local rows, born, died, placed, left, revived, dead = {}, {}, {}, {}, {}, {}, {}
local byte, find, sub = string.byte, string.find, string.sub
local function old_place(record, key)
    if byte(record, HEADER + 1) == 0 then return nil end  -- it has no index key
    return sub(record, HEADER + 1, find(record, '\\0', HEADER + 1, true)) .. key
end
local from = 1
for each, size in ipairs(sizes) do
    local key, record, index_size, old, new = keys[each], records[each], index_sizes[each], nil, nil
    local text = sub(values, from, from + size - 1)
    from = from + size
    local its_digest = digest_of(text)
    digest = digest + its_digest
    if head ~= seen then text = marked(its_digest) .. sub(text, HEADER + 1) end  -- that offset is another's
    rows[2 * each - 1], rows[2 * each] = key, text
    if record and #record > HEADER then
        old = old_place(record, key)
    else
        born[#born + 1] = '0'
        born[#born + 1] = key
        if record then revived[#revived + 1] = key end
    end
    if index_size > 0 then new = sub(text, HEADER + 1, HEADER + 1 + index_size) .. key end
    if old ~= new then
        if old then left[#left + 1] = old end
        if new then
            placed[#placed + 1] = '0'
            placed[#placed + 1] = new
        end
    end
end
for each = #sizes + 1, #sizes + #tombstones do
    local key, record, its_digest = keys[each], records[each], tombstones[each - #sizes]
    digest = digest + its_digest
    rows[2 * each - 1], rows[2 * each] = key, marked(its_digest)
    dead[#dead + 1] = whole(offset)
    dead[#dead + 1] = key
    if record and #record > HEADER then
        died[#died + 1] = key
        left[#left + 1] = old_place(record, key)
    end
end
found[1] = found[1] + call('HSET', KEYS[4], rows)
found[2] = found[2] + call('ZADD', KEYS[5], born) - call('ZREM', KEYS[5], died)
found[3] = found[3] - call('ZREM', KEYS[6], left) + call('ZADD', KEYS[6], placed)
found[4] = found[4] - call('ZREM', KEYS[7], revived) + call('ZADD', KEYS[7], dead)
found[5] = found[5] + 1
if not place[1] then redis.call('SADD', KEYS[2], ARGV[11]) end
keep(offset, commit_at, floor, digest, found)
return {clock(), offset}
"""
)

TRIM: Final = (
    _HEAD
    + """
-- Whatever is below the floor is not seen any more; it leaves in portions, until this returns 0.
if meta[4] then return redis.error_reply('COORD ' .. meta[4]) end
local raised = math.max(floor, math.min(tonumber(ARGV[4]), head))
local dead = redis.call('ZRANGEBYSCORE', KEYS[7], '-inf', '(' .. whole(raised), 'LIMIT', 0, AT_ONCE)
local digest = tonumber(place[4] or 0)
for each, record in ipairs(records_of(dead)) do
    local old = record and #record == HEADER and digest_of(record)
    if not old then return damage('has a damaged record "' .. dead[each] .. '"') end
    digest = digest - old
end
call('HDEL', KEYS[4], dead)
call('ZREM', KEYS[7], dead)
local gone = redis.call('XTRIM', KEYS[8], 'MINID', '~', whole(raised), 'LIMIT', 10 * AT_ONCE)
if gone == 0 then redis.call('XTRIM', KEYS[8], 'MINID', whole(raised)) end
if place[1] then keep(place[1], place[2], raised, digest, counts()) end
return {clock(), #dead + gone}
"""
)

INSTALL: Final = """
if redis.call('HEXISTS', KEYS[1], 'format') == 0 then
    redis.call('HSET', KEYS[1], 'format', ARGV[1], 'store_id', ARGV[2], 'epoch', 0, 'base', 0, 'run', ARGV[3],
        'durable', ARGV[4])
end
return redis.call('HGETALL', KEYS[1])
"""

# Whoever connects comes through here. `run` is the life of the server process in which the store was last
# used. In another one commits may be missing that were answered, unless the server keeps them through its
# end, and did so then: a plain restart. Who notices first raises the epoch: nothing is numbered twice.
ENTER: Final = (
    _LISTS
    + """
for command in string.gmatch(ARGV[3], '%a+') do
    if not redis.acl_check_cmd(command, KEYS[1], '0', '0', '0', '0') then
        return redis.error_reply('NOPERM this user may not call ' .. string.upper(command))
    end
end
local meta = redis.call('HMGET', KEYS[1], 'format', 'run', 'durable', 'epoch')
if meta[1] == ARGV[4] then
    if meta[2] ~= ARGV[1] and not (meta[3] == '1' and ARGV[2] == '1') then
        local epoch, now = meta[4] + 1, clock()
        if epoch > EPOCHS then return redis.error_reply('COORD this store has no epochs left') end
        local base = epoch * EPOCH_UNIT + (now - SINCE) % EPOCH_UNIT
        redis.call('HSET', KEYS[1], 'epoch', whole(epoch), 'base', whole(base), 'raised', whole(now))
    end
    if meta[2] ~= ARGV[1] or meta[3] ~= ARGV[2] then
        redis.call('HSET', KEYS[1], 'run', ARGV[1], 'durable', ARGV[2])
    end
end
return redis.call('HGETALL', KEYS[1])
"""
)

NOTE: Final = """
local said, unsaid = unpack(cmsgpack.unpack(ARGV[1]))
if #said > 0 then redis.call('HSET', KEYS[1], unpack(said)) end
if #unsaid > 0 then redis.call('HDEL', KEYS[1], unpack(unsaid)) end
"""

CLEAR: Final = """
redis.call('DEL', unpack(KEYS, 3))
redis.call('SREM', KEYS[2], ARGV[1])
"""

ADD: Final = (
    _LISTS
    + """
local keys, sizes, index_sizes = unpack(cmsgpack.unpack(ARGV[1]))
local values, from, rows, born, placed = ARGV[2], 1, {}, {}, {}
for each, key in ipairs(keys) do
    local text = string.sub(values, from, from + sizes[each] - 1)
    from = from + sizes[each]
    rows[2 * each - 1], rows[2 * each] = key, text
    born[2 * each - 1], born[2 * each] = '0', key
    if index_sizes[each] > 0 then
        placed[#placed + 1] = '0'
        placed[#placed + 1] = string.sub(text, 33, 33 + index_sizes[each]) .. key
    end
end
call('HSET', KEYS[4], rows)
call('ZADD', KEYS[5], born)
call('ZADD', KEYS[6], placed)
"""
)

BEGIN: Final = (
    _TOTALS
    + """
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
redis.call('XADD', KEYS[8], ARGV[1] .. '-0', 'at', ARGV[2], 'id', ARGV[3], 'events', ARGV[4],
    'checksum', ARGV[6])
local digest, what = survey()
if not digest then return damage(what) end
keep(ARGV[1], ARGV[2], ARGV[1], digest, counts())
redis.call('SADD', KEYS[2], ARGV[5])
return 1
"""
)


class Script:
    """A script and the name that the server knows it by."""

    def __init__(self, body: str, flags: str = "") -> None:
        for name, value in {"EPOCH_UNIT": EPOCH_UNIT, "EPOCHS": EPOCHS, "SINCE": SINCE}.items():
            body = body.replace(name, value)
        self.text = f"#!lua{flags}\n{body}".encode()
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest()


ALSO_WHEN_FULL: Final = " flags=allow-oom"

verify, load, tail, trim, enter = (Script(body, ALSO_WHEN_FULL) for body in (VERIFY, LOAD, TAIL, TRIM, ENTER))
commit, install = Script(COMMIT), Script(INSTALL)
set_metadata, clear, add, begin = Script(NOTE), Script(CLEAR), Script(ADD), Script(BEGIN)


def keys_of(prefix: str, tenant: str) -> tuple[str, ...]:
    """Return the keys of a tenant, as the scripts number them from 1."""
    return (
        f"{{{prefix}}}:meta",
        f"{{{prefix}}}:tenants",
        *(f"{{{prefix}}}:{tenant}:{part}" for part in PARTS),
    )
