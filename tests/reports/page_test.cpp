// The page of a run: its data, and what a browser makes of it. Tests with a browser are skipped where there is none.

#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

#include "tests/reports/two_layers.h"

namespace metaprof {
namespace {

// The data of a page, as its scripts read it.
Json data_of(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(opening) + opening.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST_F(TwoLayersFiles, PageHasItsDataAndNothingFromElsewhere) {
  const std::string text = page();
  for (const char* elsewhere : {"http://", "https://", "src=", "@import", "url("})
    EXPECT_EQ(text.find(elsewhere), std::string::npos) << elsewhere;
  expect_golden("page.json", data_of(text).dump(1) + "\n");
}

// What is alive at a moment follows from the stays: at each, the bytes that the timeline has.
TEST_F(TwoLayersFiles, StaysOfThePageSumToTheTimeline) {
  const Json data = data_of(page());
  const size_t moments = data["moments"].size() / 4;
  std::vector<int64_t> live(moments);
  size_t from = 0;
  for (size_t i = 0; i < data["stays"].size(); i += 8) {
    from += data["stays"][i].get<size_t>();
    const size_t lasts = data["stays"][i + 1];
    for (size_t k = from; k < (lasts == 0 ? moments : from + lasts); ++k)
      live[k] += data["stays"][i + 2].get<int64_t>();
  }
  const std::vector<Sample> samples = timeline(trace_, kFirstGpu);
  ASSERT_EQ(samples.size(), moments);
  for (size_t i = 0; i < moments; ++i) {
    int64_t total = 0;
    for (const Bytes& bytes : samples[i].by_category) total += bytes.count;
    EXPECT_EQ(live[i], total) << "moment " << i;
  }
}

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

// The page's body tag after its script has run: what was painted. What it says on the console is an error.
std::string rendered(const std::string& page, int width = 1200) {
  const std::string base = testing::TempDir() + "metaprof_page" + std::to_string(getpid());
  std::ofstream(base + ".html") << page;
  const std::string command =
      "timeout 120 " + browser() +
      fmt::format(" --headless --no-sandbox --disable-gpu --window-size={},1500", width) +
      " --enable-logging=stderr --user-data-dir=" + base + ".profile --dump-dom file://" + base + ".html > " +
      base + ".dom 2> " + base + ".err";
  if (std::system(command.c_str()) != 0) return "";
  std::istringstream messages(read_file(base + ".err"));
  for (std::string line; std::getline(messages, line);) EXPECT_EQ(line.find("CONSOLE"), line.npos) << line;
  const std::string dom = read_file(base + ".dom");
  const size_t begin = dom.find("<body");
  return begin == std::string::npos ? dom : dom.substr(begin, dom.find('>', begin) - begin);
}

// The page, and behind its own scripts that of a user, who notes what is seen in `seen`.
std::string with_user(std::string page, const std::string& script) {
  constexpr const char* kHands = R"js(<script>
    const seen = document.body.dataset, get = (id) => document.getElementById(id);
    const fire = (canvas, type, x, y, more) => {
      const box = canvas.getBoundingClientRect();
      const at = { clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true };
      canvas.dispatchEvent(new (type === 'wheel' ? WheelEvent : PointerEvent)(type, Object.assign(at, more)));
    };
    const press = (key, more) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', Object.assign({ key: key, bubbles: true, cancelable: true }, more)));
    const line = (text) => text.replace(/\n/g, ' / ');
    const press_button = (box, label) => [...get(box).children].find((button) => button.textContent === label).click();
)js";
  page.replace(page.rfind("</body>"), 7, kHands + script + "</script></body>");
  return page;
}

void expect_seen(const std::string& body, const std::vector<std::string>& all) {
  for (const std::string& expected : all)
    EXPECT_NE(body.find(expected), std::string::npos) << expected << "\n" << body;
}

TEST_F(TwoLayersFiles, ABrowserPaintsThePage) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium";
  const std::string body = rendered(page());
  if (body.empty()) GTEST_SKIP() << "chromium does not run here";
  EXPECT_NE(body.find("data-ready=\"yes\""), std::string::npos) << body;
  EXPECT_NE(body.find("data-rows=\"5\""), std::string::npos) << body;
  // Both drawings show parameters and workspaces, which are large at the peak.
  const size_t treemap = body.find("data-treemap=");
  EXPECT_NE(body.find("workspace:", body.find("data-timeline=")), std::string::npos) << body;
  EXPECT_NE(body.find("parameter:", treemap), std::string::npos) << body;
  EXPECT_NE(body.find("workspace:", treemap), std::string::npos) << body;
}

// What a user does with a mouse: zoom, hover, choose a moment, search, sort, go into a module.
TEST_F(TwoLayersFiles, ABrowserFollowsTheUser) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium";
  const std::string body = rendered(with_user(page(), R"js(
    const pixels = (canvas) => canvas.toDataURL();
    const whole = pixels(get('timeline'));
    fire(get('timeline'), 'wheel', 0.6, 0.5, { deltaY: -600, cancelable: true });
    seen.scrolled = String(pixels(get('timeline')) === whole);
    fire(get('timeline'), 'wheel', 0.6, 0.5, { deltaY: -600, ctrlKey: true, cancelable: true });
    seen.zoomed = String(pixels(get('timeline')) !== whole);
    fire(get('timeline'), 'dblclick', 0.6, 0.5);
    seen.back = String(pixels(get('timeline')) === whole);
    press_button('axis', 'events');
    seen.events = String(pixels(get('timeline')) !== whole);
    press_button('steps', 'all');
    fire(get('timeline'), 'pointermove', 0.5, 0.5);
    seen.tip = line(get('timeline-tip').textContent);
    const peak = pixels(get('treemap'));
    fire(get('timeline'), 'pointerdown', 0.1, 0.5);
    fire(get('timeline'), 'pointerup', 0.1, 0.5);
    seen.early = get('alive-when').textContent + String(pixels(get('treemap')) !== peak);
    press_button('tabs', 'Alive then');
    seen.alive = get('table').tBodies[0].rows[0].cells[0].textContent + ', ' + get('table').tFoot.rows[0].cells[4].textContent;
    press_button('jumps', 'peak');
    seen.again = get('alive-when').textContent + String(pixels(get('treemap')) === peak);
    seen.most = get('table').tFoot.rows[0].cells[4].textContent;
    press_button('tabs', 'Modules');
    get('search').value = 'FC2';
    get('search').dispatchEvent(new Event('input'));
    seen.found = String(get('table').tBodies[0].rows.length);
    get('search').value = '';
    get('search').dispatchEvent(new Event('input'));
    get('table').tHead.rows[0].cells[3].firstChild.click();
    seen.largest = get('table').tBodies[0].rows[1].cells[0].textContent;
    press_button('tabs', 'Nodes');
    seen.nodes = String(get('table').tBodies[0].rows.length);
    fire(get('treemap'), 'pointermove', 0.1, 0.5);
    seen.held = line(get('treemap-tip').textContent);
    fire(get('treemap'), 'click', 0.1, 0.5);
    seen.inside = get('crumbs').textContent;)js"));
  if (body.empty()) GTEST_SKIP() << "chromium does not run here";
  // The peak is 3228 B: docs of the trace; the first moments are those of the setup.
  expect_seen(body, {"data-scrolled=\"true\"", "data-zoomed=\"true\"", "data-back=\"true\"",
                     "data-events=\"true\"", "data-early=\"at the chosen momenttrue\"",
                     "data-again=\"at the peaktrue\"", "data-most=\"3.2 KiB\"", "data-found=\"1\"",
                     "data-largest=\"fc1\"", "data-nodes=\"5\"", "data-held=\"cuBLAS workspace",
                     "workspace of fc2, made by aten::addmm / model.py:9 / 1.0 KiB, 31.7 %",
                     "data-inside=\"everything › fc2  1.8 KiB of 3.2 KiB\"", " live / "});
}

// The same without a mouse: everything that can be clicked takes the focus, canvases follow the arrow keys.
TEST_F(TwoLayersFiles, ABrowserFollowsTheKeyboard) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium";
  const std::string body = rendered(with_user(page(), R"js(
    const stops = [...document.querySelectorAll('button, canvas, input, select')].filter((stop) => stop.offsetParent && !stop.disabled);
    seen.stops = String(stops.every((stop) => stop.tabIndex >= 0));
    const time = get('timeline'), map = get('treemap'), now = () => Number(time.getAttribute('aria-valuenow'));
    time.focus();
    const peak = now();
    press('Home');
    const first = now();
    seen.home = String(first < peak) + ' ' + get('alive-when').textContent;
    press('ArrowRight');
    const second = now();
    press('ArrowLeft');
    seen.walk = String(second > first && now() === first);
    press('End');
    seen.end = String(now() > peak) + ' ' + String(time.getAttribute('aria-valuetext') === get('moment').textContent);
    press('p');
    seen.peak = String(now() === peak);
    const whole = time.toDataURL();
    press('+');
    const near = time.toDataURL();
    press('0');
    seen.zoom = String(near !== whole && time.toDataURL() === whole);
    map.focus();
    press('Enter');
    seen.into = get('crumbs').textContent;
    press('ArrowRight');
    seen.second = get('chosen').textContent;
    press('Backspace');
    seen.out = get('crumbs').textContent;
    const twisty = document.querySelector('button.twisty');
    twisty.focus();
    twisty.click();
    seen.closed = get('table').tBodies[0].rows.length + ' ' + document.activeElement.getAttribute('aria-expanded');)js"));
  if (body.empty()) GTEST_SKIP() << "chromium does not run here";
  expect_seen(body, {"data-stops=\"true\"", "data-home=\"true at the chosen moment\"", "data-walk=\"true\"",
                     "data-end=\"true true\"", "data-peak=\"true\"", "data-zoom=\"true\"",
                     "data-into=\"everything › fc2  1.8 KiB of 3.2 KiB\"", "data-out=\"everything  3.2 KiB\"",
                     "data-closed=\"1 false\""});
}

// On a phone nothing is wider than the screen, and the table shows a figure beside each name.
TEST_F(TwoLayersFiles, ABrowserPaintsThePageOnAPhone) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium";
  std::string frame = with_user(page(),
                                "parent.document.body.dataset.seen = [innerWidth, "
                                "document.documentElement.scrollWidth <= innerWidth, "
                                "[...get('table').tBodies[0].rows[0].cells].filter((cell) => "
                                "cell.offsetWidth > 0).length, get('figure').offsetWidth > 0].join(' ');");
  for (size_t at = 0; (at = frame.find_first_of("&\"", at)) != std::string::npos; ++at)
    frame.replace(at, 1, frame[at] == '&' ? "&amp;" : "&quot;");
  const std::string body =
      rendered("<body><iframe width=420 height=900 srcdoc=\"" + frame + "\"></iframe></body>");
  if (body.empty()) GTEST_SKIP() << "chromium does not run here";
  expect_seen(body, {"data-seen=\"420 true 2 true\""});
}

// Where memory ran out the page ends, with the limit and the request that failed.
TEST_F(TwoLayersFiles, ABrowserMarksTheFailingRequest) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium";
  ProfileReport small = report_;
  small.device_memory = {3300};
  small.needed_memory = Bytes{4000};
  const size_t peak = small.memory.peak.event;
  small.memory.phases.out_of_memory = OutOfMemory{.event = peak + 4,
                                                  .part = {.phase = Phase::backward, .step = 0},
                                                  .op = "aten::mm",
                                                  .module = "fc2",
                                                  .requested = {512},
                                                  .allocated = {3000},
                                                  .reserved = {3000}};
  small.advice = {
      {.changes = {}, .allocated = {3228}, .reserved = {4000}, .flops = {10}, .fits = false},
      {.changes = {{"batch", "4"}}, .allocated = {1600}, .reserved = {2000}, .flops = {5}, .fits = true}};
  const std::string body = rendered(with_user(page(trace_, small), R"js(
    seen.when = get('alive-when').textContent;
    seen.jumps = [...get('jumps').children].map((button) => button.textContent).join();
    seen.advice = line(get('advice').tBodies[0].rows[1].innerText);
    seen.room = get('room').innerText.replace(/\s+/g, ' ');
    const red = [207, 34, 46], copy = document.createElement('canvas');
    copy.width = get('timeline').width, copy.height = get('timeline').height;
    const hand = copy.getContext('2d', { willReadFrequently: true });
    hand.drawImage(get('timeline'), 0, 0);
    const data_ = hand.getImageData(0, 0, copy.width, copy.height).data;
    let found = 0;
    for (let i = 0; i < data_.length; i += 4) if (red.every((v, k) => data_[i + k] === v)) ++found;
    seen.red = String(found > 150);)js"));
  if (body.empty()) GTEST_SKIP() << "chromium does not run here";
  expect_seen(body, {"data-when=\"when memory runs out\"", "data-jumps=\"peak,the failing request\"",
                     "data-advice=\"--batch 4", "the device ends: 3.2 KiB", "data-red=\"true\""});
}

TEST_F(TwoLayersFiles, ABrowserShowsTwoRuns) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium";
  const ProfileDiff diff{.before = "before.json",
                         .after = "two_layers",
                         .options = {"optimizer: adamw → sgd"},
                         .rows = {{"peak.allocated_bytes", 5000, 3228},
                                  {"peak.by_category.gradient", 1024, 512},
                                  {"flops.forward", 1000, 2000},
                                  {"modules.fc1.saved_bytes", 2048, 128}}};
  const std::string body = rendered(with_user(page(trace_, report_, &diff), R"js(
    seen.bars = String(get('compared-rooms').querySelectorAll('.room').length) + ' ' + get('compared-options').textContent;
    seen.rows = [...get('compared-table').tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent).join(' ')).join('; ');)js"));
  if (body.empty()) GTEST_SKIP() << "chromium does not run here";
  expect_seen(body,
              {"data-bars=\"2 optimizer: adamw → sgd\"",
               "data-rows=\"allocated at most 4.9 KiB 3.2 KiB −1.7 KiB -35.4 %; FLOPs, forward 1.00 kFLOP "
               "2.00 kFLOP +1.00 kFLOP 100.0 %; gradient at the peak 1.0 KiB 512 B −512 B -50.0 %; fc1 keeps "
               "2.0 KiB 128 B −1.9 KiB -93.8 %\""});
}

TEST_F(TwoLayersFiles, ABrowserPaintsAHundredThousandEvents) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium";
  Trace many;
  many.add({.kind = Event::Kind::phase, .detail = static_cast<uint8_t>(Phase::forward)});
  for (uint32_t i = 1; i <= 50000; ++i) {
    many.storages.push_back({.bytes = {1000 + i % 77}, .device = Device{DeviceType::cuda, 0}});
    many.add({.kind = Event::Kind::alloc,
              .detail = static_cast<uint8_t>(i % 2 ? Category::gradient : Category::parameter),
              .id = i,
              .value = 1000 + i % 77});
    if (i > 1000) many.add({.kind = Event::Kind::free, .id = i - 1000});
  }
  const std::string body = rendered(page(many, report_));
  if (body.empty()) GTEST_SKIP() << "chromium does not run here";
  EXPECT_NE(body.find("data-moments=\"99000\""), std::string::npos) << body;
  EXPECT_NE(body.find("data-timeline=\"gradient:"), std::string::npos) << body;
}

}  // namespace
}  // namespace metaprof
