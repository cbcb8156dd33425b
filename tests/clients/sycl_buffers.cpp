// SYCL without its compiler: kernels by OpenCL, USM, a buffer with accessors, a host task, an image, a graph. Prints how many commands it made.
#include <CL/cl.h>
#include <sycl/sycl.hpp>

#include <cstdio>
#include <vector>

namespace experimental = sycl::ext::oneapi::experimental;

int main()
{
	const char *source = "__kernel void scale(__global float *a, float f) { a[get_global_id(0)] *= f; }";
	const size_t items = 1024;
	const int kernels = 3;
	sycl::queue queue{sycl::cpu_selector_v};
	auto context = queue.get_context();
	auto device = queue.get_device();
	cl_context cl = sycl::get_native<sycl::backend::opencl>(context);
	cl_device_id id = sycl::get_native<sycl::backend::opencl>(device);
	cl_program program = clCreateProgramWithSource(cl, 1, &source, nullptr, nullptr);
	if (clBuildProgram(program, 1, &id, "", nullptr, nullptr))
		return 1;
	sycl::kernel kernel = sycl::make_kernel<sycl::backend::opencl>(clCreateKernel(program, "scale", nullptr), context);
	float *a = sycl::malloc_device<float>(items, queue);
	(void)sycl::malloc_shared<float>(77, queue); // stays
	for (int i = 0; i < kernels; i++)
		queue.submit([&](sycl::handler &h) {
			h.set_args(a, 2.0f);
			h.parallel_for(sycl::range<1>(items), kernel);
		});
	queue.memset(a, 0, items * sizeof(float)).wait();
	{
		std::vector<float> values(items, 1.0f);
		sycl::buffer<float, 1> buffer(values.data(), sycl::range<1>(items));
		queue.submit([&](sycl::handler &h) {
			sycl::accessor accessor(buffer, h, sycl::read_write);
			h.set_args(accessor, 3.0f);
			h.parallel_for(sycl::range<1>(items), kernel);
		});
		queue.submit([&](sycl::handler &h) {
			sycl::accessor accessor(buffer, h, sycl::read_only);
			h.host_task([] {});
		});
	}
	{
		sycl::unsampled_image<2> image(sycl::image_format::r8g8b8a8_unorm, sycl::range<2>(16, 8));
	}
	experimental::command_graph<experimental::graph_state::modifiable> graph(context, device);
	graph.begin_recording(queue);
	queue.submit([&](sycl::handler &h) {
		h.set_args(a, 2.0f);
		h.parallel_for(sycl::range<1>(items), kernel);
	});
	graph.end_recording();
	auto executable = graph.finalize();
	queue.ext_oneapi_graph(executable);
	queue.wait();
	sycl::free(a, queue);
	std::printf("%d\n", kernels + 1);
}
